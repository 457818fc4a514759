#!/usr/bin/env bash
# Runs the device suite on a machine with an NVIDIA GPU and CuPy, uncompiled, from the sources here.
# Needs no installation: rushlight's own requirements (numpy, ml_dtypes, scipy), CuPy and pytest.
#
#   tools/gpu_check.sh [pytest arguments]
#
# CuPy compiles each kernel when it is first used, which is most of the time spent: the tests are
# split over JOBS processes (default 12), which share CuPy's cache on disk.
set -uo pipefail
cd "$(dirname "$0")/.."

PYTHON=${PYTHON:-python3}
JOBS=${JOBS:-12}
LIMIT=${LIMIT:-330}  # seconds a process may run
LOGS=$(mktemp -d)
trap 'rm -rf "$LOGS"' EXIT
export PYTHONPATH="$PWD/src" RUSHLIGHT_DEVICE=${RUSHLIGHT_DEVICE:-cuda} RUSHLIGHT_EXPECT=pure
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1

"$PYTHON" - <<'PY' || exit 2
import importlib
import sys

print("python", sys.version.split()[0])
missing = []
for name in ("numpy", "ml_dtypes", "scipy", "pytest", "cupy"):
    try:
        print(name, importlib.import_module(name).__version__)
    except ImportError as error:
        print(name, "MISSING:", error)
        missing.append(name)
needed = {"numpy", "ml_dtypes"} & set(missing)
if needed:
    sys.exit(f"rushlight itself needs {', '.join(sorted(needed))}: nothing can be checked")
if "scipy" in missing:
    print("without SciPy the special functions have nothing to be compared with: they will fail")
PY

if "$PYTHON" -c 'import pytest' 2>/dev/null; then
    # no configuration file: its minimum versions and its warnings-are-errors are not for CuPy
    run=("$PYTHON" -m pytest -c /dev/null --rootdir "$PWD" -p no:cacheprovider -q --tb=short
        -W ignore tests/device "$@")
else
    echo "pytest is missing: tests/device/plain.py runs the tests"
    run=("$PYTHON" tests/device/plain.py)
fi

began=$SECONDS
pids=()
for ((shard = 0; shard < JOBS; shard++)); do
    RUSHLIGHT_SHARD=$shard/$JOBS timeout "$LIMIT" "${run[@]}" >"$LOGS/$shard" 2>&1 &
    pids+=($!)
done
status=0
for ((shard = 0; shard < JOBS; shard++)); do
    wait "${pids[shard]}"
    rc=$?
    if ((rc == 124)); then
        echo "shard $shard ran past ${LIMIT}s; its last line: $(tail -n 1 "$LOGS/$shard")"
    fi
    ((rc == 0 || rc == 5)) || status=1  # 5: the shard had no tests
done

cat "$LOGS"/* | grep -E '^(E  |FAILED|ERROR)' | sort | uniq -c | sort -rn | head -n "${LINES_SHOWN:-120}"
echo "--- summary"
for ((shard = 0; shard < JOBS; shard++)); do
    tail -n 1 "$LOGS/$shard"
done | awk '{ for (i = 2; i <= NF; i++) if ($i ~ /^(passed|failed|error)/) { sub(",", "", $i); n[$i] += $(i-1) } }
            END { for (k in n) print n[k], k }'
echo "$((SECONDS - began)) s in $JOBS processes; exit status $status"
if ((status)) && [[ -n ${OUT:-} ]]; then
    cat "$LOGS"/* >"$OUT/gpu_check.log"  # everything, for reading afterwards
fi
exit $status
