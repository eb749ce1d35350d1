#!/usr/bin/env bash
# A worker in bash and curl, one short job at a time: for cron scripts and machines without another language.
#
#   export HOLDFAST_API_URL=http://localhost:8080 HOLDFAST_API_KEY=hf_…
#   ./worker.sh
#
# It needs curl, and jq or python3 to read JSON. README.md in the folder above lists its limits.
set -u
source "$(dirname "${BASH_SOURCE[0]}")/json.sh"
: "${HOLDFAST_API_URL:?set it to the address of a node}" "${HOLDFAST_API_KEY:?set it to a key with the scope worker}"
queues=${HOLDFAST_QUEUES:-ops} lease=${HOLDFAST_LEASE_SECONDS:-15} drain=${HOLDFAST_DRAIN_SECONDS:-30}
third=$((lease > 3 ? lease / 3 : 1)) draining='' worker=''
claim="\"queues\": [\"${queues//,/\", \"}\"], \"types\": [\"site.check\", \"folder.size\"]"
state=$(mktemp -d)  # what the background processes share: held, handler, stop, lost

# A handler reads the fields of its payload with `field`, and prints its result as JSON. Exit code 65 (wrong data) makes
# the job dead, any other except 0 is retried; the last line of standard error is the message.
handle() {
  case $1 in
    site.check)
      local url; url=$(field payload.url <"$state/job")
      [[ $url == http*://* ]] || { echo "payload.url: '$url' is no http address" >&2; return 65; }
      curl -sS -o /dev/null -w '{"status": %{http_code}, "seconds": %{time_total}}' "$url" ;;
    folder.size)
      local size; size=$(set -o pipefail; du -sk -- "$(field payload.path <"$state/job")" | cut -f1) || return
      printf '{"kilobytes": %s}' "$size" ;;
  esac
}

# background COMMAND…: start a command in a process group of its own, so that `end` reaches its children too.
background() { set -m; "$@" & set +m; }
end() { kill -- "-$1" 2>/dev/null; }

# call PATH BODY SECONDS: set status (000 without a response) and response. The key stays out of the list of processes.
call() {
  response=$(curl -sS -m "$3" -w '\n%{http_code}' -H 'Content-Type: application/json' --data-binary @- \
    --config <(printf 'header = "Authorization: Bearer %s"' "$HOLDFAST_API_KEY") \
    "$HOLDFAST_API_URL/v1/leases$1" <<<"$2")
  status=${response##*$'\n'} response=${response%$'\n'*}
}

# stop OUTCOME: stop the handler; the first outcome counts, and `lost` is not reported.
stop() { (set -C; echo "$1" >"$state/stop") 2>/dev/null; end "$(cat "$state/handler" 2>/dev/null)"; }
# stop_after SECONDS OUTCOME: start a timer that stops the handler.
stop_after() { background expire "$@"; timers+=($!); }
expire() { sleep "$1"; stop "$2"; }

# Renew the lease until the worker ends; runs in the background.
renew() {
  local sent=$SECONDS pause=$third began
  while sleep "$pause"; do
    kill -0 $$ 2>/dev/null || { stop lost; rm -rf "$state"; return; }  # the worker was killed
    began=$SECONDS pause=1
    call /renew "{\"worker\": \"$worker\", \"lease\": $lease, \"held\": [$(cat "$state/held")]}" 2
    if [[ $status == 200 ]]; then
      sent=$began pause=$third
      [[ -z $(field lost.0 <<<"$response") ]] || stop lost  # cancelled
      [[ -z $(field draining <<<"$response") ]] || kill -TERM $$
    elif [[ $(field code <<<"$response") == lease_lost ]] || ((SECONDS - sent >= lease * 5 / 6)); then
      touch "$state/lost"; stop lost; return
    fi
  done
}

# settle OUTCOME: report an outcome until there is a response, and forget the job.
settle() {
  until [[ -e $state/lost ]]; do
    call /settle "{\"worker\": \"$worker\", \"outcomes\": [{\"id\": \"$id\", \"fence\": $fence, $1}]}" 5
    [[ $status == 200 || $(field code <<<"$response") == lease_lost ]] && break
    [[ $status == 4?? && $status != 429 ]] && set -- "$(failed "\"the node refused the outcome: $status\"" false)"
    sleep 1
  done
  : >"$state/held"
}

# failed MESSAGE RETRYABLE: print the outcome of an attempt that failed.
failed() { printf '"outcome": "failed", "error": {"kind": "HandlerFailed", "message": %s}, "retryable": %s' "$1" "$2"; }
attempt() { handle "$(field type <"$state/job")" >"$state/result" 2>"$state/error"; echo $? >"$state/code"; }

# run: run the claimed job, and report its outcome. A job of /held has no attempts: the response to its claim was lost.
run() {
  local handler timeout code error timers=()
  timeout=$(field timeout <"$state/job"); rm -f "$state"/{stop,code}
  [[ -z $draining && $(field attempts <"$state/job") ]] || { settle '"outcome": "released", "started": false'; return; }
  background attempt; handler=$!; echo $handler >"$state/handler"
  [[ -z $timeout ]] || stop_after "$timeout" "\"outcome\": \"timed_out\", \"after\": $timeout"
  while kill -0 $handler 2>/dev/null; do
    wait $handler  # SIGTERM interrupts it
    [[ -z $draining ]] || stop_after "$drain" '"outcome": "released"'
  done
  rm "$state/handler"
  for timer in ${timers[@]+"${timers[@]}"}; do end "$timer"; done
  code=$(cat "$state/code" 2>/dev/null) error=$(tail -n 1 "$state/error" | quote)
  case $(cat "$state/stop" 2>/dev/null)/$code in
    lost/*) : >"$state/held" ;;
    ?*/*) settle "$(<"$state/stop")" ;;
    /0) settle "\"outcome\": \"succeeded\", \"result\": $(<"$state/result")" ;;
    /65) settle "$(failed "$error" false)" ;;
    *) settle "$(failed "$error" true)" ;;
  esac
}

trap 'draining=1' TERM INT
trap 'for group in $(jobs -p); do end "$group"; done; rm -rf "$state"' EXIT
while [[ -z $draining ]]; do
  if [[ -z $worker || -e $state/lost ]]; then  # register, first and after a lost lease
    rm -f "$state/lost"; : >"$state/held"
    call '' "{\"register\": {\"name\": \"curl\", \"slots\": 1}, $claim, \"lease\": $lease, \"limit\": 0}" 5
    worker=$(field worker <<<"$response")
    [[ -n $worker ]] || { echo "cannot register: $status $response" >&2; sleep 2; continue; }
    background renew
  fi
  call '' "{\"worker\": \"$worker\", $claim, \"limit\": 1, \"wait\": 2}" 10
  [[ $status == 200 ]] || { sleep 1; call /held "{\"worker\": \"$worker\"}" 5; }  # find a job of a lost response
  id=$(field jobs.0.id <<<"$response") fence=$(field jobs.0.fence <<<"$response")
  [[ -n $id ]] || continue
  echo "{\"id\": \"$id\", \"fence\": $fence}" >"$state/held"
  field jobs.0 <<<"$response" >"$state/job"; run
done
[[ -e $state/lost || -z $worker ]] || call /depart "{\"worker\": \"$worker\"}" 5
