// The kernel of a Java context.
//
// Compiled and run by the source launcher of a JDK; descriptor 3 is the guest's socket. The frames are those of
// python/driver.py. Cells are snippets of JShell in this same process: what they print goes to our own
// output, and what they declare stays.
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.Collectors;
import jdk.jshell.*;
import jdk.jshell.execution.LocalExecutionControlProvider;

public class Driver {
  private static final List<String> IMPORTS =
      List.of("java.io.*", "java.math.*", "java.net.*", "java.nio.file.*", "java.util.*", "java.util.concurrent.*",
              "java.util.function.*", "java.util.regex.*", "java.util.stream.*");

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

  // Java cannot change its environment: variables are properties.
  private static void setProperties(String block) {
    for (String entry : block.split("\0")) {
      int equals = entry.indexOf('=');
      if (equals > 0) System.setProperty(entry.substring(0, equals), entry.substring(equals + 1));
      else if (!entry.isEmpty()) System.clearProperty(entry);
    }
  }

  private static void run(Cell cell) throws IOException {
    running = cell.count;
    setProperties(cell.sets);
    try {
      String shown = evaluate(cell);
      if (isInterrupted(cell.count)) {
        sendError("Interrupted", "The cell was interrupted", "Interrupted: The cell was interrupted");
      } else if (shown != null) {
        sendEvent("{\"type\":\"result\",\"text\":" + quote(shown) + ",\"is_main_result\":true,\"extra\":{}}");
      }
    } finally {
      running = "";
      setProperties(cell.resets);
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
    String whole = event.exception() instanceof EvalException
                       ? ((EvalException) event.exception()).getExceptionClassName()
                       : event.exception().getClass().getName();
    String name = whole.substring(whole.lastIndexOf('.') + 1);
    String message = Objects.requireNonNullElse(event.exception().getMessage(), "");
    sendError(name, message, trace.toString().replaceFirst("jdk\\.jshell\\.EvalException", whole).strip());
    return false;
  }

  private static String shownOf(SnippetEvent event) {
    boolean isExpression = event.snippet().kind() == Snippet.Kind.EXPRESSION ||
                           event.snippet().subKind() == Snippet.SubKind.TEMP_VAR_EXPRESSION_SUBKIND;
    String value = event.value();
    if (!isExpression || value == null || value.isEmpty()) return null;
    boolean isQuoted = value.length() >= 2 && value.startsWith("\"") && value.endsWith("\"");
    return isQuoted ? value.substring(1, value.length() - 1) : value;
  }
}
