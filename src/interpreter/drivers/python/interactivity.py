"""Cells that show more than their last expression, or nothing: what IPython calls ast_node_interactivity."""
import ast

core = core  # given by the driver

MODES = ("all", "last", "last_expr", "none", "last_expr_or_assign")


def rewritten(tree, mode, is_silenced):
    if mode in ("all", "last"):
        first = 0 if mode == "all" else len(tree.body) - 1
        tree.body = [shown(each) if at >= first and isinstance(each, ast.Expr) and not is_silenced(each) else each
                     for at, each in enumerate(tree.body)]
    elif mode == "last_expr_or_assign" and tree.body:
        name = assigned(tree.body[-1])
        if name and not is_silenced(tree.body[-1]):
            end = tree.body[-1]
            value = ast.copy_location(ast.Name(name, ast.Load()), end)
            tree.body.append(ast.copy_location(ast.Expr(value), end))
    return tree


def shown(expression):
    hook = ast.parse("__import__('sys').displayhook(0)", mode="eval").body
    hook.args = [expression.value]
    for node in (hook, hook.func, hook.func.value, hook.func.value.func, hook.func.value.args[0]):
        ast.copy_location(node, expression)
    return ast.copy_location(ast.Expr(hook), expression)


def assigned(statement):
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and isinstance(targets[0], ast.Name):
        return targets[0].id
    return None
