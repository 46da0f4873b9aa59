#!/bin/sh
# Prints storage/start/migration_list.c: every migrations/NNNN_what.sql as a C string, in order of their numbers.
set -eu
folder=$(dirname "$0")
echo '/* Made by migrations/embed.sh from migrations/NNNN_what.sql: change those. */'
echo '#include "storage/start/migration_list.h"'
echo
echo 'const struct migration migration_list[] = {'
for file in "$folder"/[0-9][0-9][0-9][0-9]_*.sql; do
	stem=$(basename "$file" .sql)
	number=$(echo "$stem" | sed 's/^0*\([0-9]*\)_.*/\1/')
	echo "	{$number, \"$stem\","
	# Comments and empty lines stay out; the rest becomes one string literal a line.
	sed -e '/^--/d' -e '/^[[:space:]]*$/d' -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/	/ /g' -e 's/^/	 "/' -e 's/$/\\n"/' "$file"
	echo '	},'
done
echo '};'
echo
echo 'const size_t migration_count = sizeof(migration_list) / sizeof(migration_list[0]);'
