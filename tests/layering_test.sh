#!/usr/bin/env bash
# Fails on an include between folders of src/ that src/LAYERS does not allow, and on a cycle-prone
# "../" include. Usage: tests/layering_test.sh [repository]
set -euo pipefail
cd "${1:-$(dirname "$0")/..}/src"

bad=0
for folder in */; do
  folder=${folder%/}
  allowed=$(sed -n "s/^$folder:[[:space:]]*//p" LAYERS)
  if ! grep -q "^$folder:" LAYERS; then
    echo "src/$folder: not in src/LAYERS"
    bad=1
    continue
  fi
  # file:line:#include "folder/..."
  while IFS= read -r hit; do
    target=$(sed -E 's/.*#include "([^"]*)".*/\1/' <<<"$hit")
    layer=${target%%/*}
    [ -d "$layer" ] || { [ "$layer" != "$target" ] || [ -e "$folder/$target" ] || echo "src/$hit: includes are written from src/"; continue; }
    [ "$layer" = "$folder" ] && continue
    case " $allowed " in *" $layer "*) continue ;; esac
    # Tests, and fakes that only tests include, may use testing/.
    case "$hit" in *_test.cc:* | */fake_*.h:* | *_test_support.h:* | */test_*.h:*) [ "$layer" = testing ] && continue ;; esac
    echo "src/$hit: $folder may not include $layer (src/LAYERS)"
    bad=1
  done < <(grep -rnE '^#include "' "$folder" --include='*.cc' --include='*.h' || true)
  if grep -rnE '^#include "\.\./' "$folder" --include='*.cc' --include='*.h'; then
    bad=1
  fi
done
[ "$bad" = 0 ] && echo "layers: every include is allowed by src/LAYERS"
exit "$bad"
