"""Plans: reads as a tree of operators instead of SQL, so that the server parses no text.

    plan = get(table("item", "shop"), [key(id=parameter(0))]).columns("id", "price").filter(reference(1) > 100).plan()
    session.run(plan, 7)

A tree is built once and kept as bytes with a digest. A value that differs between executions is `parameter(n)`, table names included.
"""

import hashlib

from . import xrpc_pb2 as pb
from .values import Identifier, scalar

_A, _E = pb.AnyPlan, pb.Expr


def parameter(position):
    """The value of that number, from 0, of those that come with a request. It may stand for a name, a value, or in an expression."""
    return pb.Scalar(type=pb.Scalar.V_PLACEHOLDER, v_position=position)


class Plan:
    """A tree that is ready to be sent."""

    def __init__(self, tree):
        self.tree = tree
        self.digest = hashlib.md5(tree.SerializeToString(deterministic=True), usedforsecurity=False).digest()


class Table:
    """A table, its database, and the index to read it by: the primary key where none is named."""

    def __init__(self, name, schema=None, index=None):
        self.info = pb.TableInfo(name=scalar(name))
        if schema is not None:
            self.info.schema_name.CopyFrom(scalar(schema))
        self.index = None if index is None else pb.IndexInfo(name=scalar(index))


table = Table


def key(*values, **columns):
    """Values for the first columns of an index, all of which must be equal: by name, or in the order of the index."""
    parts = [pb.KeyExpr(value=scalar(value)) for value in values]
    return pb.GetExpr(keys=parts + [pb.KeyExpr(field=scalar(name), value=scalar(value)) for name, value in columns.items()])


class Read:
    """A tree under construction; each method returns a new one."""

    def __init__(self, tree):
        self.tree = tree

    def columns(self, *fields):
        """These columns alone, by name or by position from 0; in this order references count them."""
        return Read(_A(plan_type=_A.TABLE_PROJECT, table_project=pb.TableProject(sub_read_plan=self.tree, fields=map(scalar, fields))))

    def compute(self, **columns):
        """Replaces each row by computed columns with these names."""
        fields = [scalar(Identifier(name)) for name in columns]
        return Read(_A(plan_type=_A.PROJECT, project=pb.Project(sub_read_plan=self.tree, fields=fields, exprs=[_expression(of) for of in columns.values()])))

    def filter(self, condition):
        """The rows of which this is true."""
        return Read(_A(plan_type=_A.FILTER, filter=pb.Filter(sub_read_plan=self.tree, expr=_expression(condition))))

    def aggregate(self, kind, of):
        """One value of all rows; `kind` is a name as `COUNT_DISTINCT`."""
        return Read(_A(plan_type=_A.AGGR, aggr=pb.Aggr(sub_read_plan=self.tree, type=pb.Aggr.Kind.Value(kind), expr=_expression(of))))

    def plan(self):
        return Plan(self.tree)


def get(table, keys):
    """The rows that have one of the keys."""
    return Read(_A(plan_type=_A.GET, get_plan=pb.GetPlan(table_info=table.info, index_info=table.index, keys=keys)))


def scan(table, reverse=None):
    """All rows in the order of the index."""
    return Read(_A(plan_type=_A.TABLE_SCAN, table_scan_plan=pb.TableScanPlan(table_info=table.info, index_info=table.index, reverse=reverse)))


def between(table, start=None, end=None, reverse=None):
    """The rows from one key to another, both included; None is the end of the index on that side."""
    return Read(_A(plan_type=_A.RANGE_SCAN, range_scan=pb.RangeScan(table_info=table.info, index_info=table.index, key=start, end_key=end, reverse=reverse)))


class Expression:
    """An expression of a filter or a projection. Python's operators combine expressions; `&`, `|` and `~` are AND, OR and NOT."""

    def __init__(self, message):
        self.message = message

    def like(self, pattern):
        return operator("like", self, pattern)

    def not_like(self, pattern):
        return operator("not_like", self, pattern)

    def is_in(self, *values):
        return operator("in", self, *values)

    def is_not_in(self, *values):
        return operator("not_in", self, *values)

    def is_null(self):
        return operator("is", self, None)

    def is_not_null(self):
        return operator("is_not", self, None)

    def same_as(self, other):
        """Equality for which NULL is a value like others."""
        return operator("<=>", self, other)

    def __neg__(self):
        return operator("-", self)

    def __pos__(self):
        return operator("+", self)

    def __invert__(self):
        return operator("!", self)

    # Equality makes an expression, so expressions are no keys of dictionaries.
    __hash__ = None


def _binary(name):
    return lambda self, other: operator(name, self, other)


for _method, _name in {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "div", "mod": "%", "gt": ">", "ge": ">=", "lt": "<", "le": "<=", "eq": "==", "ne": "!=", "and": "&&", "or": "||",
}.items():
    setattr(Expression, f"__{_method}__", _binary(_name))


def _expression(value):
    if isinstance(value, Expression):
        return value.message
    value = scalar(value)
    if value.type == pb.Scalar.V_PLACEHOLDER:
        return _E(type=_E.PLACEHOLDER, position=value.v_position)
    return _E(type=_E.LITERAL, literal=value)


def reference(position):
    """A column of the node below, from 0."""
    return Expression(_E(type=_E.REF, ref_id=position))


def literal(value):
    """A value or a parameter, where an expression begins with one."""
    return Expression(_expression(value))


def operator(name, *operands):
    """An operator by its name, as `is_not`."""
    return Expression(_E(type=_E.OPERATOR, operator=pb.Operator(name=name, param=map(_expression, operands))))


def call(name, *arguments):
    """A function by its name."""
    return Expression(_E(type=_E.FUNC_CALL, function_call=pb.FunctionCall(name=pb.Identifier(name=name), param=map(_expression, arguments))))
