#!/bin/sh
# archive_command: keep one WAL segment. Usage: archive-wal.sh FROM TO
# 0 only when the segment is whole and on the disk; PostgreSQL keeps it and asks again otherwise.
set -eu
from=$1
to=$2

if [ -f "$to" ]; then
    # Asked a second time after a crash: the same is fine, another one is never overwritten.
    cmp -s "$from" "$to"
    exit
fi
draft="$to.draft.$$"
trap 'rm -f "$draft"' EXIT
umask 077
cp "$from" "$draft"
sync "$draft"
mv "$draft" "$to"
sync "$(dirname "$to")"
