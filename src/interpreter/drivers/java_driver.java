// The kernel of a Java context.
//
// Compiled and run by the source launcher of a JDK; descriptor 3 is the guest's socket. The frames are those of
// python/driver.py. Cells are snippets of JShell in this same process: what they print goes to our own
// output, and what they declare stays.
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.*;
import java.util.regex.*;
import java.util.stream.Collectors;
import jdk.jshell.*;
import jdk.jshell.execution.LocalExecutionControlProvider;

public class Driver {
  private static final List<String> IMPORTS =
      List.of("java.io.*", "java.math.*", "java.net.*", "java.nio.file.*", "java.util.*", "java.util.concurrent.*",
              "java.util.function.*", "java.util.regex.*", "java.util.stream.*");

  private static final Pattern ESCAPED = Pattern.compile("\\\\([0-7]{1,3}|.)");

  private static class Cell {
    String count;
    String sets;
    String resets;
    String code;
  }

  private static final BlockingQueue<Cell> cells = new LinkedBlockingQueue<>();
  private static volatile String running = "";      // the cell's count
  private static volatile String interrupted = "";  // of the last one that somebody wants ended
  private static InputStream in;
  private static OutputStream out;
  private static JShell shell;
  private static Map<String, String> environment;  // what System.getenv() shows

  public static void main(String[] arguments) throws Exception {
    // A descriptor that somebody else opened has no other way in.
    var make = FileDescriptor.class.getDeclaredConstructor(int.class);
    make.setAccessible(true);
    FileDescriptor control = make.newInstance(3);
    in = new BufferedInputStream(new FileInputStream(control));
    out = new FileOutputStream(control);
    System.setOut(new PrintStream(new FileOutputStream(FileDescriptor.out), true, "UTF-8"));
    System.setErr(new PrintStream(new FileOutputStream(FileDescriptor.err), true, "UTF-8"));
    shell = JShell.builder().executionEngine(new LocalExecutionControlProvider(), Map.of()).build();
    for (String each : IMPORTS) shell.eval("import " + each + ";");
    for (var each : System.getenv().entrySet()) {
      if (System.getProperty(each.getKey()) == null) System.setProperty(each.getKey(), each.getValue());
    }
    environment = openEnvironment();
    startThread(Driver::read);
    send("ready\n");
    while (true) run(cells.take());
  }

  // --- what comes in

  private static void read() {
    try {
      for (String line = readLine(); line != null; line = readLine()) {
        String[] words = line.split(" ");
        if (words[0].equals("interrupt")) {
          interrupted = words[1];
          startThread(Driver::stop);
        } else if (words[0].equals("run")) {
          Cell cell = new Cell();
          cell.count = words[1];
          cell.sets = readText(words[3]);
          cell.resets = readText(words[4]);
          cell.code = readText(words[5]);
          cells.add(cell);
        }
      }
    } catch (IOException gone) {
      // as at the end
    }
    Runtime.getRuntime().halt(0);
  }

  private static String readLine() throws IOException {
    StringBuilder line = new StringBuilder();
    for (int c = in.read(); c != '\n'; c = in.read()) {
      if (c < 0) return null;
      line.append((char) c);
    }
    return line.toString();
  }

  private static String readText(String size) throws IOException {
    return new String(in.readNBytes(Integer.parseInt(size)), StandardCharsets.UTF_8);
  }

  // A stop that comes while a cell is still compiled stops nothing: another follows.
  private static void stop() {
    try {
      for (; isInterrupted(running); Thread.sleep(50)) shell.stop();
    } catch (InterruptedException end) {
      // nobody does that
    }
  }

  private static void startThread(Runnable work) {
    Thread thread = new Thread(work);
    thread.setDaemon(true);
    thread.start();
  }

  private static boolean isInterrupted(String count) {
    return !count.isEmpty() && count.equals(interrupted);
  }

  // --- what goes out

  private static synchronized void send(String text) throws IOException {
    out.write(text.getBytes(StandardCharsets.UTF_8));
  }

  private static void sendEvent(String json) throws IOException {
    send("event " + json.getBytes(StandardCharsets.UTF_8).length + "\n" + json);
  }

  private static void sendError(String name, String value, String traceback) throws IOException {
    sendEvent("{\"type\":\"error\",\"name\":" + quote(name) + ",\"value\":" + quote(value) + ",\"traceback\":" +
              quote(traceback) + "}");
  }

  private static String quote(String text) {
    StringBuilder quoted = new StringBuilder("\"");
    for (char c : String.valueOf(text).toCharArray()) {
      if (c == '"' || c == '\\') quoted.append('\\').append(c);
      else if (c < ' ' || Character.isSurrogate(c)) quoted.append(String.format("\\u%04x", (int) c));
      else quoted.append(c);
    }
    return quoted.append('"').toString();
  }

  // --- running a cell

  // Java has no word for changing its environment, and keeps it in a map that says no. Behind that is one which does
  // not: children get it as well. Where a JDK has it no longer, variables are properties alone.
  @SuppressWarnings("unchecked")
  private static Map<String, String> openEnvironment() {
    try {
      var map = System.getenv().getClass().getDeclaredField("m");
      map.setAccessible(true);
      return (Map<String, String>) map.get(System.getenv());
    } catch (ReflectiveOperationException | RuntimeException closed) {
      return new HashMap<>();
    }
  }

  private static void setVariables(String block) {
    for (String entry : block.split("\0")) {
      int equals = entry.indexOf('=');
      if (equals > 0) {
        System.setProperty(entry.substring(0, equals), entry.substring(equals + 1));
        environment.put(entry.substring(0, equals), entry.substring(equals + 1));
      } else if (!entry.isEmpty()) {
        System.clearProperty(entry);
        environment.remove(entry);
      }
    }
  }

  private static void run(Cell cell) throws IOException {
    running = cell.count;
    setVariables(cell.sets);
    try {
      String shown = evaluate(cell);
      if (isInterrupted(cell.count)) {
        sendError("Interrupted", "The cell was interrupted", "Interrupted: The cell was interrupted");
      } else if (shown != null) {
        sendEvent("{\"type\":\"result\",\"text\":" + quote(shown) + ",\"is_main_result\":true,\"extra\":{}}");
      }
    } catch (RuntimeException error) {
      sendError(error.getClass().getSimpleName(), error.getMessage(), error.toString());
    } finally {
      running = "";
      setVariables(cell.resets);
      System.out.flush();
      System.err.flush();
      send("end " + cell.count + " 0\n");
    }
  }

  // What the last snippet gives, if it is an expression. The first one that fails is the end.
  private static String evaluate(Cell cell) throws IOException {
    String shown = null;
    for (String rest = cell.code; !rest.isBlank();) {
      var part = shell.sourceCodeAnalysis().analyzeCompletion(rest);
      String source = part.source() == null ? rest : part.source();
      rest = part.source() == null ? "" : part.remaining();
      shown = null;
      for (SnippetEvent event : shell.eval(source)) {
        if (isInterrupted(cell.count) || !report(event)) return null;
        if (event.causeSnippet() == null) shown = shownOf(event);
      }
    }
    return shown;
  }

  private static boolean report(SnippetEvent event) throws IOException {
    if (event.status() == Snippet.Status.REJECTED) {
      String said = shell.diagnostics(event.snippet())
                        .map(each -> each.getMessage(null))
                        .collect(Collectors.joining("\n"));
      sendError("CompilationException", said.lines().findFirst().orElse("it does not compile"),
                event.snippet().source().strip() + "\n\n" + said);
      return false;
    }
    if (event.exception() == null) return true;
    StringWriter trace = new StringWriter();
    event.exception().printStackTrace(new PrintWriter(trace, true));
    String whole = nameOf(event.exception());
    String name = whole.substring(whole.lastIndexOf('.') + 1);
    String message = Objects.requireNonNullElse(event.exception().getMessage(), "");
    sendError(name, message, withNames(trace.toString(), event.exception()).strip());
    return false;
  }

  // What a cell throws comes wrapped. Its own classes are inside one of JShell's, which nobody wants to see.
  private static String nameOf(Throwable thrown) {
    if (!(thrown instanceof EvalException)) return thrown.getClass().getName();
    return ((EvalException) thrown).getExceptionClassName().replaceFirst("^REPL\\.\\$JShell\\$\\w+?\\$", "");
  }

  // A name may have a $ in it, which means something else in a replacement.
  private static String withNames(String trace, Throwable thrown) {
    for (Throwable each = thrown; each != null; each = each.getCause()) {
      if (each instanceof EvalException)
        trace = trace.replaceFirst("jdk\\.jshell\\.EvalException", Matcher.quoteReplacement(nameOf(each)));
    }
    return trace;
  }

  private static String shownOf(SnippetEvent event) {
    boolean isExpression = event.snippet().kind() == Snippet.Kind.EXPRESSION ||
                           event.snippet().subKind() == Snippet.SubKind.TEMP_VAR_EXPRESSION_SUBKIND;
    String value = event.value();
    if (!isExpression || value == null || value.isEmpty()) return null;
    boolean isQuoted = value.length() >= 2 && "\"'".indexOf(value.charAt(0)) >= 0 && value.endsWith(value.substring(0, 1));
    return isQuoted ? unescaped(value.substring(1, value.length() - 1)) : value;
  }

  // JShell writes strings as they would be in a program.
  private static String unescaped(String text) {
    return ESCAPED.matcher(text).replaceAll(found -> Matcher.quoteReplacement(meant(found.group(1))));
  }

  private static String meant(String escaped) {
    int letter = "btnfr".indexOf(escaped.charAt(0));
    if (letter >= 0) return "\b\t\n\f\r".substring(letter, letter + 1);
    boolean isNumber = Character.isDigit(escaped.charAt(0));
    return isNumber ? String.valueOf((char) Integer.parseInt(escaped, 8)) : escaped;
  }
}
