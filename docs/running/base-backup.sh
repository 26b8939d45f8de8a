#!/bin/sh
# A verified base backup of a running server. Usage: base-backup.sh FOLDER CONNECTION
#   base-backup.sh /srv/backup "host=pg1,pg2,pg3 user=backup target_session_attrs=read-write"
# Run it as PostgreSQL's user, by a timer. The password comes from PGPASSFILE. The backup is FOLDER/<UTC time>;
# together with the WAL archive it can be restored to any moment after it. The vault's keyset is not in it, and must
# not be.
set -eu
folder=$1
connection=$2
umask 077

name=$(date -u +%Y%m%dT%H%M%SZ)
draft="$folder/$name.draft"
pg_basebackup --dbname="$connection" --pgdata="$draft" --wal-method=stream --checkpoint=fast --no-password
pg_verifybackup --quiet "$draft"
sync -f "$draft"
mv "$draft" "$folder/$name"
echo "$folder/$name"
