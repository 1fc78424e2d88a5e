"""From a cell's text to code: for all its statements, and for the last one where its value is to be shown."""
import builtins
import linecache
import sys
from _ast import Expr, Expression, PyCF_ONLY_AST
from keyword import iskeyword

core = core  # given by the driver
State, namespace, part = core.State, core.namespace, core.part

AWAIT = 0x2000  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, without importing ast
COROUTINE = 0x80  # inspect.CO_COROUTINE
# Cells that are run again and again are compiled once.
MOST_CACHED = 64
LONGEST_CACHED = 4096
# How cells begin that may have been copied with prompts or indentation.
FROM_ELSEWHERE = (" ", "\t", "\n", "\r", ">", "I")

cache = {}


def cell_name(count):
    return "Cell In[%d]" % count


def remember_source(name, code):
    """For tracebacks and inspect.getsource."""
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)


def parse(code, name):
    return compile(code, name, "exec", PyCF_ONLY_AST | AWAIT | State.future, True)


def automagic(code):
    """What IPython makes of `pip install x` and `pwd`, while nothing is called pip or pwd."""
    words = code.split(None, 1)
    if not words or not words[0].isidentifier() or "\n" in code.strip():
        return None
    is_taken = words[0] in namespace or hasattr(builtins, words[0]) or iskeyword(words[0])
    if is_taken or len(words) > 1 and words[1].startswith("="):
        return None
    return part("transform").automagic(code)


def tree_of(code, name):
    """What a cell says as Python, and the text that is meant."""
    if code[:1] in FROM_ELSEWHERE or "\n>>>" in code or "\n..." in code:
        code = part("transform").clean(code)
    remember_source(name, code)
    text = automagic(code) or code
    try:
        return parse(text, name), text
    except SyntaxError:
        if not any(mark in code for mark in "%!?,;/"):
            raise
        text = part("transform").transform(code)
        if text == code:
            raise
    return parse(text, name), text


def is_silenced(expression, text):
    """Whether a ; follows the last expression. What else may follow are brackets and comments."""
    if ";" not in text:
        return False
    lines = text.encode().splitlines()[expression.end_lineno - 1:]
    lines[0] = lines[0][expression.end_col_offset:]
    return b"".join(line.partition(b"#")[0] for line in lines).strip().endswith(b";")


def note_future(flags):
    """What comes from __future__ holds for the cells after it too."""
    import __future__
    every = 0
    for name in __future__.all_feature_names:
        every |= getattr(__future__, name).compiler_flag
    if flags & every & ~State.future:
        State.future |= flags & every
        cache.clear()


def interactivity():
    """Which expressions of a cell are shown: a class of IPython's says so, that there may be or not."""
    library = sys.modules.get("IPython.core.interactiveshell")
    for known in (State.watchers and State.watchers.shell, getattr(library, "InteractiveShell", None)):
        mode = getattr(known, "ast_node_interactivity", None)
        if isinstance(mode, str) and mode != "last_expr":
            return mode
    return "last_expr"


def compile_tree(tree, text, name, mode):
    """Code for all statements, and for the last if it is an expression that is to be shown."""
    if mode != "last_expr":
        tree = part("interactivity").rewritten(tree, mode, lambda last: is_silenced(last, text))
    last = None
    is_shown = mode in ("last_expr", "last_expr_or_assign")
    if is_shown and tree.body and type(tree.body[-1]) is Expr and not is_silenced(tree.body[-1], text):
        last = compile(Expression(tree.body.pop().value), name, "eval", AWAIT | State.future, True)
    body = compile(tree, name, "exec", AWAIT | State.future, True) if tree.body else None
    if body and "__future__" in text:
        note_future(body.co_flags)
    return body, last


def compiled(code):
    """The code of all statements, that of the last expression, and whether they need a loop."""
    mode = interactivity()
    return mode == "last_expr" and cache.get(code) or compile_cell(code, mode)


def compile_cell(code, mode):
    tree, text = tree_of(code, cell_name(State.count))
    is_changed = State.watchers and State.watchers.shell.ast_transformers
    if is_changed:
        tree = State.watchers.shell.transform_ast(tree)
    may_need_loop = "asyncio" in sys.modules or "asyncio" in code or "aiohttp" in code
    if may_need_loop:
        part("awaiting").note_names(tree, text)
    body, last = compile_tree(tree, text, cell_name(State.count), mode)
    asynchronous = bool((body.co_flags if body else 0) & COROUTINE
                        or (last.co_flags if last else 0) & COROUTINE)
    if not asynchronous and may_need_loop:
        asynchronous = part("awaiting").needs_loop(code)
    result = body, last, asynchronous
    # A variable may take a magic's name, and an error's lines are those of the cell it is in.
    if len(code) <= LONGEST_CACHED and text is code and mode == "last_expr" and not is_changed:
        if len(cache) >= MOST_CACHED:
            del cache[next(iter(cache))]
        cache[code] = result
    return result
