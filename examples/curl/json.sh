# Functions that read and write JSON with jq, or with python3 where jq is missing.

# field PATH: print a value of the JSON on standard input; nothing for null, false or a missing one.
field() {
  if command -v jq >/dev/null; then
    jq -r --arg path "$1" '[$path | split(".")[] | tonumber? // .] as $keys | try getpath($keys) catch null // empty'
  else
    python3 -c '
import json, sys
try:
    value = json.load(sys.stdin)
    for key in sys.argv[1].split("."):
        value = value[int(key) if key.isdigit() else key]
except (KeyError, IndexError, TypeError, ValueError):
    value = None
print("" if value in (None, False) else value if isinstance(value, str) else json.dumps(value))' "$1"
  fi
}

# quote: print standard input as a JSON string.
quote() {
  if command -v jq >/dev/null; then
    jq -Rs .
  else
    python3 -c 'import json, sys; print(json.dumps(sys.stdin.read()))'
  fi
}
