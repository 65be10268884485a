#!/bin/sh
# The command is mysqld with options, or options alone; anything else is run as it is.
set -e
case "$1" in
-*) ;;
mysqld) shift ;;
*) exec "$@" ;;
esac
data=/var/lib/mysql
if [ ! -d "$data/mysql" ]; then
	# --init-file also lets other hosts in, as the official image does with MYSQL_ROOT_HOST=%.
	printf "CREATE USER root@'%%' IDENTIFIED BY '';\nGRANT ALL ON *.* TO root@'%%' WITH GRANT OPTION;\n" >/tmp/init.sql
	mysqld --no-defaults --user=root --datadir="$data" --initialize-insecure --init-file=/tmp/init.sql "$@"
fi
exec mysqld --no-defaults --user=root --datadir="$data" "$@"
