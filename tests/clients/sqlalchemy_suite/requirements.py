"""Demands everything that the suite leaves out by default; a test that PostgreSQL itself fails then is listed in fails_on_postgresql.txt."""

import inspect

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

# Not features of a server, or not served by PostgreSQL unless configured.
LEFT = {"asyncio", "async_dialect", "two_phase_transactions", "skip_autocommit_rollback"}


class Requirements(SuiteRequirements):
    def get_order_by_collation(self, config):
        return "C"

    def get_isolation_levels(self, config):
        return {"default": "READ COMMITTED", "supported": ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE", "AUTOCOMMIT"]}


for name, member in inspect.getmembers_static(SuiteRequirements, lambda member: isinstance(member, property)):
    if name not in LEFT and "exclusions.closed()" in inspect.getsource(member.fget):
        setattr(Requirements, name, property(lambda self: exclusions.open()))
