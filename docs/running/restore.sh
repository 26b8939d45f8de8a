#!/bin/sh
# Make a data folder that starts as of a moment. Usage: restore.sh BACKUP ARCHIVE DATA MOMENT
#   restore.sh /srv/backup/20260101T020000Z /var/lib/tollhouse-archive /var/lib/postgresql/new "2026-01-01 09:59:59+00"
# Run it as PostgreSQL's user. Nothing is started: look at DATA/postgresql.auto.conf, then start a server on DATA. It
# replays to MOMENT, stops there and takes reads only; when all is right: SELECT pg_wal_replay_resume().
set -eu
backup=$1
archive=$2
data=$3
moment=$4
umask 077

[ ! -e "$data" ] || { echo "$data exists: restore into a new folder" >&2; exit 1; }
pg_verifybackup --quiet "$backup"
cp -R "$backup" "$data"
rm -f "$data/standby.signal"
cat >> "$data/postgresql.auto.conf" <<END
restore_command = 'cp "$archive/%f" "%p"'
recovery_target_time = '$moment'
recovery_target_action = 'pause'
primary_conninfo = ''
synchronous_standby_names = ''
archive_mode = off
END
touch "$data/recovery.signal"
