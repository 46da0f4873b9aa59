# What the recipes beside this file share; they source it. A call can be interrupted by a signal,
# and however a recipe ends, an engine that it may have paused is told to go on: `held` says so,
# and the recipe's function `release` does it. Before that the recipe's function `forget` is called
# where `stale` says that cached prefixes may be of other weights than the engine now has.
# `at_end` may name one more function, which runs after both.
#
#   ENGINE_TOKEN         sent as bearer token when set
#   ENGINE_SECONDS       how long one call may take: 1800. From the end of the pause on: 60 at most
#   ENGINE_TRIES         how often an update is tried: 3
#   ENGINE_RESUME_TRIES  how often resuming is tried, a second apart: 30
set -u
step=${DELTABUCKET_STEP:?run this from deltabucket follow --exec}
path=${DELTABUCKET_PATH:?run this from deltabucket follow --exec}
unset socket
engine=$url seconds=${ENGINE_SECONDS:-1800} pause=${ENGINE_PAUSE:-${pauses%% *}}
held= pausing= stale= at_end= calls= count=0 failure=0 code= begun=

say() {
	echo "engine $url, step $step: $1" >&2
}

# A JSON string.
quoted() {
	printf '"%s"' "$(printf '%s' "$1" | sed 's/[\\"]/\\&/g')"
}

# check VARIABLE VALUE: ends the script, before anything is sent, unless it is a count.
check() {
	case $2 in
	0* | *[!0-9]* | ???????*)
		say "$1=$2 is not a whole number from 1 to 999999"
		exit 2
		;;
	esac
}

# check_flag VARIABLE VALUE
check_flag() {
	case $2 in
	'' | 0 | 1) ;;
	*)
		say "$1=$2 is neither 0 nor 1"
		exit 2
		;;
	esac
}

# The recipe's `pauses` are the words that its engine knows; the first one is the default.
check_pause() {
	case " $pauses " in
	*" $pause "*) ;;
	*)
		say "ENGINE_PAUSE=$pause is none of: $pauses"
		exit 2
		;;
	esac
}

# The folder for what calls say. It is made again where somebody removed it meanwhile.
prepare() {
	[ ! -d "${scratch:-}" ] || return 0
	scratch=$(mktemp -d) || return 1
	(
		umask 077
		echo 'Content-Type: application/json'
		[ -z "${ENGINE_TOKEN:-}" ] || echo "Authorization: Bearer $ENGINE_TOKEN"
	) >"$scratch/headers"
}

# begin METHOD PATH [JSON]: sends a request beside those that were begun before; where $socket is
# set, through that Unix socket. No signal ends it but ours: a pause that is under way is waited
# for.
begin() {
	count=$((count + 1))
	echo "$1 $2" >"$scratch/$count.name"
	(
		trap '' $signals
		exec curl -sS --max-time "$seconds" -o "$scratch/$count" \
			-w '%{http_code}' -X "$1" -H "@$scratch/headers" \
			${socket+--unix-socket "$socket"} ${3+--data "$3"} "$url$2" 9>&-
	) >"$scratch/$count.code" &
	calls="$calls $!"
}

answered() {
	if [ "$1" = 000 ]; then echo 'no answer'; else echo "status $1"; fi
}

# Waits for all of them. False when one failed; $code and $failure are then that one's status (000
# when no answer came) and curl's exit status.
settle() {
	result=0 number=0
	for call in $calls; do
		number=$((number + 1)) ended=0
		wait "$call" || ended=$?
		status=$(cat "$scratch/$number.code")
		case $status in
		2??) ! grep -q '"success": *false' "$scratch/$number" 2>/dev/null || ended=22 ;;
		*) [ "$ended" != 0 ] || ended=22 ;;
		esac
		if [ "$ended" != 0 ]; then
			result=1 code=$status failure=$ended
			say "$(cat "$scratch/$number.name") failed: $(answered "$code")"
			head -c 2000 "$scratch/$number" 2>/dev/null | tr -d '\r' | sed '$a\' >&2
		fi
		rm -f "$scratch/$number"
	done
	calls= count=0
	return "$result"
}

# post PATH JSON
post() {
	begin POST "$1" "$2"
	settle
}

# attempt COMMAND...: up to ENGINE_TRIES times. Not again after a time-out: the engine may still be
# at work on the call before.
attempt() {
	left=${ENGINE_TRIES:-3}
	until "$@"; do
		left=$((left - 1))
		if [ "$left" -le 0 ] || [ "$failure" = 28 ]; then
			return 1
		fi
		sleep 1
	done
}

# Waits until no other recipe of this user holds the engine: one that a killed `follow` left behind
# must not resume it in the middle of this update. Its end, however it comes, lets go.
claim() {
	command -v flock >/dev/null || return 0
	exec 9>>"${XDG_RUNTIME_DIR:-${TMPDIR:-/tmp}}/deltabucket-engine-$(id -u)-$(printf %s "$url" | cksum | tr -d ' ')"
	flock 9 &
	wait $!
}

# hold PATH JSON: pauses. When it fails, the script ends, and the engine is told to go on unless it
# cannot have heard of the pause.
hold() {
	claim
	begun=$(uptime_ms)
	held=1 pausing=1
	if post "$1" "$2"; then
		pausing=
		return
	fi
	pausing=
	case $failure:$code in
	[67]:*) held= && say 'nobody listens there' ;;
	*:404) held= && say "it has no $1: ENGINES.md says how the server is started" ;;
	*) say 'it could not be paused: it goes on with the old weights' ;;
	esac
	exit 1
}

# To be called before what may change weights.
spoil() {
	[ "${ENGINE_FLUSH:-1}" = 0 ] || stale=1
}

# Forgets prefixes that may be stale, and ends a pause that was begun. No call may take long here,
# for the next one may be heard.
unhold() {
	url=$engine undone=0
	[ "$seconds" -le 60 ] || seconds=60
	prepare
	if [ -n "$stale" ] && ! attempt forget; then
		say 'it may still cache prefixes of the old weights'
		undone=1
	fi
	stale=
	[ -z "$held" ] || go_on || undone=1
	held= # or tried often enough: not again at the end
	return "$undone"
}

# Repeated after a time-out, too: an engine that goes on already only says so.
go_on() {
	rests=${ENGINE_RESUME_TRIES:-30}
	until release; do
		rests=$((rests - 1))
		if [ "$rests" -le 0 ]; then
			say 'it could not be told to go on: if it still runs, it is paused'
			return 1
		fi
		sleep 1
	done
	tell_pause
}

# A clock that nobody sets, in steps of 10 ms; nothing where there is none. expr takes leading zeros
# as what they are.
uptime_ms() {
	{ read -r now _ </proc/uptime; } 2>/dev/null || return 0
	expr "${now%.*}${now#*.}" \* 10
}

# Tells `follow` for how long the engine was paused: `deltabucket replicas` shows it.
tell_pause() {
	resumed=$(uptime_ms)
	[ -n "${DELTABUCKET_REPORT:-}" ] && [ -n "$begun" ] && [ -n "$resumed" ] || return 0
	echo "pause_ms=$((resumed - begun))" >>"$DELTABUCKET_REPORT" || return 0
}

# Ends the calls that were interrupted. A pause gets ten seconds first: resuming must come after it.
hang_up() {
	[ -n "$pausing" ] && rests=10 || rests=0
	while [ -n "$calls" ] && [ "$rests" -gt 0 ] && kill -0 $calls 2>/dev/null; do
		rests=$((rests - 1))
		sleep 1
	done
	[ -z "$calls" ] || kill -KILL $calls 2>/dev/null
	calls= count=0
	unset socket
}

# However often the script is told to stop: once this has begun, it runs to its end. The traps call
# it themselves, because a signal that comes at the very beginning of an EXIT trap ends that.
finish() {
	trap '' $signals
	trap - EXIT
	hang_up
	unhold || set -- 1
	[ -z "$at_end" ] || "$at_end"
	rm -rf "$scratch"
	exit "$1"
}

check ENGINE_SECONDS "$seconds"
check ENGINE_TRIES "${ENGINE_TRIES:-3}"
check ENGINE_RESUME_TRIES "${ENGINE_RESUME_TRIES:-30}"
check_flag ENGINE_FLUSH "${ENGINE_FLUSH:-}"
check_pause
signals='HUP INT QUIT TERM USR1 USR2'
trap '' PIPE # whoever reads what we say may be gone
prepare || exit 1
trap 'finish $?' EXIT
trap 'finish 129' HUP
trap 'finish 130' INT
trap 'finish 131' QUIT
trap 'finish 138' USR1
trap 'finish 140' USR2
trap 'finish 143' TERM
