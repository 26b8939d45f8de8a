"""Triggers by which the database refuses to change or lose rows that are evidence, or that others refer to.

They stand in the models' ``Meta.triggers``: django-pgtrigger writes them into migrations, and `makemigrations --check`
misses none. In its own template any session can switch a trigger off (`SET pgtrigger.ignore`), so whatever can run SQL
could erase the audit log; :class:`GuardSql` leaves that out, and only the owner of a table can disable its guards.
docs/decisions/0057.
"""

from __future__ import annotations

from typing import Final

import pgtrigger
from django.db import models
from pgtrigger import compiler

NEVER_EMPTIED_GUARD: Final = "never_emptied"
_REFUSE_CHANGE: Final = "RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';"
_REFUSE_DELETION: Final = (
    "RAISE EXCEPTION 'rows of % are never deleted: make it inactive', TG_TABLE_NAME"
    " USING ERRCODE = 'restrict_violation';"
)


class GuardSql(compiler.UpsertTriggerSql):
    """SQL of one guard: a function that raises, and the trigger that calls it.

    Migrations name this class and its template's hash, so the template must stay as it is.
    """

    def get_template(self) -> str:
        """SQL with pgtrigger's placeholders."""
        return """
            CREATE OR REPLACE FUNCTION {pgid}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {func} END $$;
            CREATE OR REPLACE TRIGGER {pgid} {when} {operation} ON {table}
                FOR EACH {level} EXECUTE FUNCTION {pgid}();
            COMMENT ON TRIGGER {pgid} ON {table} IS '{hash}';
        """


class Guard(pgtrigger.Trigger):
    """A trigger that refuses its operation before it happens."""

    when = pgtrigger.Before

    def compile(self, model: type[models.Model]) -> compiler.Trigger:  # type: ignore[override]  # takes a class
        """What migrations store of the guard."""
        sql = GuardSql(
            pgid=self.get_pgid(model),  # type: ignore[arg-type]  # it takes a class
            func=self.render_func(model),  # type: ignore[arg-type]  # it takes a class
            table=model._meta.db_table,
            when=self.when,
            operation=self.operation,
            level=self.level,
        )
        return compiler.Trigger(name=self.name, sql=sql)


def append_only() -> list[Guard]:
    """The guards of a table whose rows are never changed, deleted or truncated."""
    return [
        Guard(name="append_only", operation=pgtrigger.Update | pgtrigger.Delete, func=_REFUSE_CHANGE),
        # Row triggers are not called by TRUNCATE.
        Guard(name=NEVER_EMPTIED_GUARD, level=pgtrigger.Statement, operation=pgtrigger.Truncate, func=_REFUSE_CHANGE),
    ]


def leaves_for(table: str, same_row: str) -> list[Guard]:
    """The guards of a table whose rows are never changed, and only deleted when ``table`` has them: ``same_row`` is SQL
    on that table and OLD. TRUNCATE of a partition is not refused."""
    moved = f"IF EXISTS (SELECT 1 FROM {table} WHERE {same_row}) THEN RETURN OLD; END IF; {_REFUSE_CHANGE}"  # noqa: S608 - our own
    return [
        Guard(name="append_only", operation=pgtrigger.Update, func=_REFUSE_CHANGE),
        Guard(name="only_moved", operation=pgtrigger.Delete, func=moved),
        Guard(name=NEVER_EMPTIED_GUARD, level=pgtrigger.Statement, operation=pgtrigger.Truncate, func=_REFUSE_CHANGE),
    ]


def never_deleted() -> list[Guard]:
    """The guard of a table whose rows are made inactive instead of deleted."""
    return [Guard(name="never_deleted", operation=pgtrigger.Delete, func=_REFUSE_DELETION)]
