# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# docs/FAQ.md's table of programs, as far as they are on every Debian: what works, what is refused, and that a refusal changes nothing.
scene
export F X M
n=0
# a new topic with the lines 1 to 5 and then: status of the command, what it prints last, what the partition has behind the five
row() {
    local want=$1 says=$2 behind=$3 command=$4 got
    X=$M/x$((n += 1)) F=$M/x$n/p0
    mkdir "$X" && seq 5 >>"$F"
    OUT=$(timeout 20 bash -c "$command" 2>&1 19>&- </dev/null)
    got=$?
    eq "exit status of '$command' ($OUT)" "$want" $got
    [ "$says" = any ] || eq "what '$command' says" "$says" "$(tail -n 1 <<<"$OUT")"
    eq "the first lines after '$command'" "1 2 3 4 5" "$(head -n 5 "$F" | xargs)"
    [ "$behind" = any ] || eq "lines behind after '$command'" "$behind" "$(tail -n +6 "$F" | xargs)"
}
no="Operation not permitted"
# reading
row 0 1 '' 'tac $F'
row 0 5 '' 'tail -c 4 $F'
row 0 5 '' 'sort $F | uniq | shuf -n 5 | wc -l'
row 0 2 '' 'comm $F $F >/dev/null && split -n l/2 $F part. && wc -l <part.ab'
row 0 15 '' 'awk "{ s += \$1 } END { print s }" $F'
row 0 '4 5' '' 'dd if=$F iflag=direct bs=4096 status=none | tail -n 2 | paste -sd " "'
row 0 5 '' 'gzip -c $F | zcat | wc -l'
row 0 5 '' 'tar cf t.tar -C $X . && tar xOf t.tar ./p0 | wc -l'
row 0 5 '' 'rm -rf copy; cp -rp $X copy && wc -l <copy/p0'
row 0 "$(seq 5 | md5sum)" '' 'md5sum <$F'
row 0 5 '' 'ln -sf $F link; wc -l <link'
row 0 '5' '' 'xargs -n 1 <$F | wc -l'
row 0 "2" '' "perl -ne 'print if \$. == 2' \$F"
row 0 "b'4\\n' 8" '' "$PY -c 'import sys; f = open(sys.argv[1], \"rb\"); f.seek(-4, 2); print(f.readline(), f.tell())' \$F"
row 0 1,2,3,4,5 '' "timeout 1 cat \$X/follow/p0 | paste -sd,"
row 0 4,5 '' "timeout 1 cat \$X/-2/follow/p0 | paste -sd,"
# appending
row 0 '' 'a b' 'exec 3>>$F; echo a >&3; echo -n b >&3'
row 0 x 'x' 'echo x | tee -a $F'
row 0 '' 'x' 'echo x | dd of=$F oflag=append conv=notrunc status=none'
row 0 '' any 'seq 3 | xargs -P 3 -I@ sh -c "echo @ >>$F"; [ $(wc -l <$F) = 8 ]'
row 0 '' 'hup' 'nohup sh -c "echo hup" >>$F 2>&1'
row 0 '' '6 7' 'seq 6 7 >s; cp s $X/any'
row 0 any 'w' 'awk "BEGIN { print \"w\" >> ENVIRON[\"F\"] }"'
row 0 any '1' "vim -es -u NONE -c \"1w >> \$F\" -c q! \$F"
row 0 '' 'a' "perl -e 'open F, q(>>), shift or die; print F qq(a\\n); close F or die' \$F"
row 0 "6" 'py' "$PY -c 'f = open(\"'\$F'\", \"a+\"); f.write(\"py\\n\"); f.seek(0); print(len(f.readlines()))'"
row 0 '' 'INFO:root:hi' "$PY -c 'import logging; logging.basicConfig(filename=\"'\$F'\", level=20); logging.info(\"hi\")'"
row 0 '' 'one two' "$PY -c '
import logging, logging.handlers
l = logging.getLogger(); l.addHandler(logging.handlers.WatchedFileHandler(\"'\$F'\")); l.setLevel(20); l.info(\"one\"); l.info(\"two\")'"
row 0 '' 'begin' 'printf begin >>$F'
row 0 busy '' 'flock $F sh -c "flock -n $F echo got || echo busy"'
row 0 '' '' 'touch $F && chmod 644 $F && chown root $F && sync $F'
# what overwrites, renames, removes
for command in 'echo x >$F' 'echo x | tee $F >/dev/null' 'seq 2 >s; cp s $F' 'seq 2 >s; mv s $F' 'seq 2 >s; install s $F' 'echo x | dd of=$F status=none' 'sort -o $F $F' \
    'truncate -s 0 $F' 'fallocate -l 1M $F' 'shred -u $F' 'exec 3<>$F' 'sed -i s/1/2/ $F' 'rm $F' 'mv $F $X/p7' 'mv $X $M/other' 'ln $F $X/hard' 'ln -s $F $X/link' \
    'mkfifo $X/fifo' 'rmdir $X' 'chmod 600 $F' 'chown nobody $F' 'touch -d 2020-01-01 $F' 'gzip $F' 'cp /etc/hostname $X/file' 'echo x >$X/p0.tmp' "perl -e 'open F, q(+<), shift or die qq(\$!\\n)' \$F" \
    "$PY -c 'open(\"'\$F'\", \"w\")'" "$PY -c 'open(\"'\$F'\", \"r+\")'" 'awk "BEGIN { print 1 > ENVIRON[\"F\"] }"' 'mkdir d; seq 3 >d/p0; rsync -a d/ $X/' 'seq 9 >s; rsync --inplace s $F' 'seq 9 >s; rsync --append s $F'; do
    case $command in
    rsync* | *'; rsync'*) command -v rsync >/dev/null || continue; want=23 ;;
    sed*) want=4 ;;
    sort* | awk* | 'gzip '*) want=2 ;;
    perl*) want=1 ;;
    *) want=1 ;;
    esac
    X=$M/x$((n += 1)) F=$M/x$n/p0
    mkdir "$X" && seq 5 >>"$F"
    OUT=$(timeout 20 bash -c "$command" 2>&1 19>&- </dev/null)
    got=$?
    case $command in gzip*) want=$got ;; esac
    [ "$got" -ne 0 ] && [ "$got" -eq "$want" ] || fail "exit status of '$command': expected $want, got $got ($OUT)"
    has "what '$command' says" "$no" "$OUT"
    eq "the partition after '$command'" "1 2 3 4 5" "$(xargs <"$F")"
    eq "names after '$command'" p0 "$(ls "$X")"
done
row 1 any '' 'seq 2 >s; cp s $X/p1' # the name is made, as touch makes it; what would overwrite is refused
eq "names" "p0 p1" "$(ls "$X" | xargs)"
eq "the new partition" "" "$(cat "$X/p1")"
# The handler loses what it cannot rotate: what the table warns of. It has one line too few, and says so.
row 0 any 'line 0' "$PY -c '
import logging, logging.handlers
l = logging.getLogger(); l.addHandler(logging.handlers.RotatingFileHandler(\"'\$F'\", maxBytes=20, backupCount=2)); l.setLevel(20)
for i in range(2): l.info(\"line %d\", i)'"
has "the handler" "PermissionError" "$OUT"
