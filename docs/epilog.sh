#!/bin/sh
# Slurm's EpilogSlurmctld (or Epilog): mails the owner of a job that failed why it did.
#
# It returns at once and always with 0; what it starts lasts at most 30 seconds, at the lowest
# priority, at most four at a time. docs/epilog.md says how to install it.

: "${FAULTLINE:=/opt/faultline/.venv/bin/faultline}" # the command
: "${FAULTLINE_STORE:=/srv/faultline}"               # whose model and site.toml count
: "${SENDMAIL:=/usr/sbin/sendmail}"
: "${MAIL_DOMAIN:=}"                                 # empty: to the local user
: "${SECONDS_MOST:=30}"
: "${AT_ONCE:=4}"
[ "$(id -u)" = 0 ] && own=/run || own=/run/lock      # all may write into /run/lock
: "${LOCKS:=$own/faultline-epilog}"
: "${MOST_BYTES:=4194304}"                           # of the end of a log
: "${MOST_KB:=4194304}"                              # of memory

case "${1:-}" in
work) ;;
*)
    case "${SLURM_JOB_EXIT_CODE:-0}" in 0 | 0:0) exit 0 ;; esac
    [ -n "${SLURM_JOB_ID:-}" ] && [ -n "${SLURM_JOB_USER:-}" ] && [ -x "$FAULTLINE" ] || exit 0
    export FAULTLINE FAULTLINE_STORE SENDMAIL MAIL_DOMAIN LOCKS AT_ONCE MOST_BYTES MOST_KB
    setsid nice -n 19 timeout -k 2 "$SECONDS_MOST" sh "$0" work </dev/null >/dev/null 2>&1 &
    exit 0
    ;;
esac

printable() { printf %s "$1" | LC_ALL=C tr -cd '[:alnum:] ._+@:/-' | cut -c 1-200; }

# The end of the job's output, with the rights of its owner alone: a job can name any file.
end_of_log() {
    if [ "$(id -u)" = 0 ]; then
        runuser -u "$SLURM_JOB_USER" -- tail -c "$MOST_BYTES" -- "$1"
    else
        exec 3<"$1" || return 1
        owner=$(id -u -- "$SLURM_JOB_USER") || return 1
        [ "$(stat -L -c '%u %F' /proc/self/fd/3)" = "$owner regular file" ] || return 1
        tail -c "$MOST_BYTES" <&3
    fi
}

# One of a few places, so that a thousand jobs that end together start no thousand processes.
# In a folder of somebody else, or one that others can write into, a place may be a link.
LOCKS=${LOCKS%/}
mkdir -p -m 700 "$LOCKS" && [ -d "$LOCKS" ] && [ ! -L "$LOCKS" ] || exit 0
case "$(stat -c '%u %a' "$LOCKS")" in "$(id -u) 700" | "$(id -u) 2700") ;; *) exit 0 ;; esac
place=0
while :; do
    place=$((place + 1))
    [ "$place" -le "$AT_ONCE" ] || exit 0
    exec 9>"$LOCKS/$place" || exit 0
    flock -n 9 && break
done

log=${SLURM_JOB_STDERR:-${SLURM_JOB_STDOUT:-}}
[ -n "$log" ] || log=$(scontrol show job -o "$SLURM_JOB_ID" | sed -n 's/.* StdErr=\([^ ]*\).*/\1/p')
[ -n "$log" ] || exit 0

ulimit -v "$MOST_KB"
said=$(end_of_log "$log" | "$FAULTLINE" classify - --store "$FAULTLINE_STORE" --format table) || exit 0
case "$said" in "The log says "*) ;; *) exit 0 ;; esac

user=$(printable "$SLURM_JOB_USER")
{
    printf 'To: %s\n' "$user${MAIL_DOMAIN:+@$(printable "$MAIL_DOMAIN")}"
    printf 'Subject: Job %s failed: why\n' "$(printable "$SLURM_JOB_ID")"
    printf 'MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n'
    printf 'Auto-Submitted: auto-generated\n\n'
    printf 'Job %s (%s) failed.\n\n' "$(printable "$SLURM_JOB_ID")" "$(printable "${SLURM_JOB_NAME:-}")"
    printf '%s\n\nFrom the end of %s, by `faultline classify`.\n' "$said" "$(printable "$log")"
} | "$SENDMAIL" -t -i
exit 0
