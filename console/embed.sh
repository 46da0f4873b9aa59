#!/bin/sh
# Prints api/console/file_list.c: every file of the console that the server sends, as bytes, with a
# gzip variant where that is smaller. A file is named by its path below this folder.
set -eu
cd "$(dirname "$0")"
scratch=$(mktemp)
trap 'rm -f "$scratch"' EXIT

bytes() { # name of the array, file
	echo "static const uint8_t $1[] = {"
	od -An -v -tx1 "$2" | sed -e 's/ \([0-9a-f][0-9a-f]\)/0x\1,/g'
	echo '};'
}
type_of() {
	case $1 in
	*.html) echo 'text/html; charset=utf-8' ;;
	*.js) echo 'text/javascript; charset=utf-8' ;;
	*.css) echo 'text/css; charset=utf-8' ;;
	*.svg) echo 'image/svg+xml' ;;
	*.woff2) echo 'font/woff2' ;;
	esac
}

echo '/* Made by console/embed.sh from the files below console/: change those. */'
echo '#include "api/console/file_list.h"'
echo
rows=
number=0
for file in $(find . -name '*.html' -o -name '*.js' -o -name '*.css' -o -name '*.svg' -o -name '*.woff2' | sed 's,^\./,,' | LC_ALL=C sort); do
	bytes "plain_$number" "$file"
	packed='{NULL, 0}'
	gzip -9n <"$file" >"$scratch"
	if [ "$(wc -c <"$scratch")" -lt "$(wc -c <"$file")" ]; then
		bytes "packed_$number" "$scratch"
		packed="{packed_$number, sizeof(packed_$number)}"
	fi
	digest=$(sha256sum <"$file" | cut -c 1-32)
	rows="$rows	{\"$file\", \"$(type_of "$file")\", \"$digest\", {plain_$number, sizeof(plain_$number)}, $packed},
"
	number=$((number + 1))
done
echo
echo 'const struct console_file console_files[] = {'
printf '%s' "$rows"
echo '};'
echo
echo 'const size_t console_file_count = sizeof(console_files) / sizeof(console_files[0]);'
