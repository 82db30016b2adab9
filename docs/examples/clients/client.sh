#!/bin/sh
# Pushes a message with a delay, receives it when it is due, and acknowledges it. It needs curl; sed finds the lease, for which a
# script would use jq.
set -eu
service=${REDELAYED_SERVICE:-http://127.0.0.1:8080}
topic=$service/v1/topics/${REDELAYED_TOPIC:-orders}

# Prints the answer, also that of a problem.
post() {
  curl --silent --show-error --max-time 30 --header "Authorization: Bearer $REDELAYED_KEY" \
    --header 'Content-Type: application/json' --data "$2" "$1"
}

# Ends the program unless the text has the part.
has() {
  case $1 in *"$2"*) ;; *) echo "expected $2 in $1" >&2; exit 1 ;; esac
}

has "$(post "$topic/messages" '{"id":"close:7","delay":500,"body":{"order":7}}')" '"outcome":"added"'

# under the same id a push can be repeated: what is there stays
has "$(post "$topic/messages" '{"id":"close:7","delay":500,"body":{"order":7}}')" '"outcome":"kept"'

received=$(post "$topic/receive" '{"wait":20000}')
has "$received" '"id":"close:7"'
has "$received" '"body":{"order":7}'
has "$received" '"attempt":1'

lease=$(printf '%s' "$received" | sed 's/.*"lease":"\([^"]*\)".*/\1/')
has "$(post "$service/v1/leases/acknowledge" "{\"leases\":[\"$lease\"]}")" '"results":["ok"]'
has "$(post "$service/v1/leases/acknowledge" "{\"leases\":[\"$lease\"]}")" '"results":["lost"]'

REDELAYED_KEY='no key'
has "$(post "$topic/messages" '{}')" '"code":"unauthorized"'

echo 'pushed, received after its delay, acknowledged'
