"""How pytest-xdist shares the tests out: whole files, or groups of files, to one worker after the other."""

from __future__ import annotations

from xdist.scheduler.loadgroup import LoadGroupScheduling


class FileScheduling(LoadGroupScheduling):
    """Gives a worker all tests of a file, or of an ``xdist_group``, that stand together in the order of the run (those
    that commit stand apart from the others), and the next when it is nearly through.

    What a file's tests share (fixtures of a module) is made once so, not by each worker. And the process that shares
    out has some 900 pieces instead of 31,000: it goes through those that are out after every test, which was half of
    its work.
    """

    _scopes: dict[str, str] | None = None

    def _split_scope(self, nodeid: str) -> str:
        if self._scopes is None:
            self._scopes, last, pieces = {}, "", 0
            for each in self.collection or ():
                scope = super()._split_scope(each)
                if scope != each:  # a group stays together wherever its tests are
                    self._scopes[each] = scope
                    continue
                file = each.partition("::")[0]
                pieces += file != last
                last = file
                self._scopes[each] = f"{file} {pieces}"
        return self._scopes[nodeid]
