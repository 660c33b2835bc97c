# [slow native] The installed library: its symbols, its header alone, the header's example, every example program against
# liblinnet.so and liblinnet.a, and results that are those of the program. Installed from what is built; nothing of the project is
# compiled here.
. tests/app/common.sh

unset MAKEFLAGS MAKELEVEL PREFIX DESTDIR # of a make that runs this test
CC=${CC:-cc} CXX=${CXX:-c++}
if [ "$CONFIG" != release ] || ! command -v make > /dev/null || ! command -v "$CC" > /dev/null || ! command -v pkg-config > /dev/null; then
    pass # the library is built in release only
    finish
fi
top=$PWD usr=$tmp/usr
make -s NVCC= CONFIG=release PREFIX="$usr" install-files > "$tmp/log" 2>&1 || fail "make install-files" "$(tail -n 5 "$tmp/log")"
export PKG_CONFIG_PATH="$usr/lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}" LD_LIBRARY_PATH="$usr/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
is "the package's version" "$(sed -n 's/^#define LINNET_VERSION "\(.*\)"/\1/p' linnet/linnet.h)" "$(pkg-config --modversion linnet)"

# compile HOW OUT SOURCE [FLAGS]: in C99, against the shared or the static library
strict="-std=c99 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror"
compile() {
    how=$1 to=$2 source=$3
    shift 3
    case $how in
    shared) libs=$(pkg-config --libs linnet) ;;
    static) libs="'$usr/lib/liblinnet.a' $(pkg-config --libs --static linnet | sed 's/-llinnet//')" ;;
    esac
    eval "$CC $strict $(pkg-config --cflags linnet) '$source' -o '$to' $* $libs"
}

# ---- symbols: adding to the list is deliberate, taking away needs another LINNET_ABI ----
nm -D --defined-only "$usr/lib/liblinnet.so" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort > "$tmp/shared"
nm -g --defined-only "$usr/lib/liblinnet.a" | awk 'NF == 3 { print $3 }' | LC_ALL=C sort > "$tmp/static"
sed -n 's/^LINNET_API .*[ *]\(linnet_[a-z0-9_]*\)(.*/\1/p' linnet/linnet.h | LC_ALL=C sort > "$tmp/header"
is "liblinnet.so exports tests/linnet/symbols.txt" "" "$(diff "$tmp/shared" tests/linnet/symbols.txt)"
is "liblinnet.a the same" "" "$(diff "$tmp/static" tests/linnet/symbols.txt)"
is "and they are the functions of linnet.h" "" "$(diff "$tmp/header" tests/linnet/symbols.txt)"
while read -r name; do grep -q "$name" "$usr/share/man/man3/linnet.3" || fail "linnet(3) describes $name"; done < "$tmp/header"
has "the name that programs link" "$(readelf -d "$usr/lib/liblinnet.so" 2> /dev/null || echo liblinnet.so.1)" "liblinnet.so.1"

# ---- the header ----
echo '#include <linnet.h>' > "$tmp/alone.c"
for std in c99 c11 c17; do ok "linnet.h alone as $std" "$CC" -std=$std -Wall -Wextra -Wpedantic -Werror -I "$usr/include" -fsyntax-only "$tmp/alone.c"; done
if command -v "$CXX" > /dev/null; then
    printf '#include <linnet.h>\nint main() { return linnet_version() == nullptr; }\n' > "$tmp/plus.cpp"
    for std in c++11 c++17; do
        ok "linnet.h as $std" sh -c "$CXX -std=$std -Wall -Wextra -Wpedantic -Werror $(pkg-config --cflags linnet) '$tmp/plus.cpp' -o '$tmp/plus' $(pkg-config --libs linnet) && '$tmp/plus'"
    done
fi
sed -n '/^ \*   #include <linnet.h>/,/^ \*   }/s/^ \*   //p' linnet/linnet.h > "$tmp/example.c"
ok "the example of linnet.h is there" test "$(wc -l < "$tmp/example.c")" -ge 20
compile shared "$tmp/example" "$tmp/example.c" 2> "$tmp/log" || fail "the example of linnet.h" "$(cat "$tmp/log")"

# ---- results are those of the program ----
"$SOUND" "$tmp/speech.wav" seconds=3
"$SOUND" "$tmp/stereo.wav" seconds=2 channels=2 rate=44100
for sound in speech stereo; do
    run transcribe --quiet --no-readable --words "$tmp/$sound.wav"
    is "the example gives the program's words of $sound.wav" "$out" "$("$tmp/example" "$tmp/$sound.wav" 2>&1)"
done
compile shared "$tmp/rpath" "$tmp/example.c" "-Wl,-rpath,$(pkg-config --variable=libdir linnet)" 2> "$tmp/log" || fail "README's rpath" "$(cat "$tmp/log")"
is "with README's rpath nothing else finds the library" "$out" "$(env -u LD_LIBRARY_PATH "$tmp/rpath" "$tmp/stereo.wav" 2>&1)"
"$tmp/example" "$tmp/missing.wav" > "$tmp/out" 2> "$tmp/log"
is "and fails where there is no sound" "1 0" "$? $(wc -c < "$tmp/out" | tr -d ' ')"
has "with a sentence" "$(cat "$tmp/log")" "missing.wav"
cat > "$tmp/json.c" <<'END'
// json SOUND ID greedy|beam|words|TEXT: the result as JSON
#include <linnet.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    linnet_error err;
    linnet_model *model = NULL;
    linnet_decoder *decoder = NULL;
    linnet_aligner *aligner = NULL;
    linnet_result *result = NULL;
    linnet_decoder_options options;
    linnet_format_options format;
    linnet_sound sound;
    char *text = NULL;
    const char *how = argv[argc - 1];
    linnet_sound_init(&sound, sizeof sound);
    sound.path = argv[1];
    linnet_format_options_init(&format, sizeof format);
    format.id = argv[2];
    linnet_decoder_options_init(&options, sizeof options);
    options.words = !strcmp(how, "words");
    if (!strcmp(how, "beam")) options.lm = "phones.lm", options.n_best = 3;
    if (linnet_model_load(NULL, NULL, &model, &err)) return 1;
    if (options.words || options.lm || !strcmp(how, "greedy")) {
        if (linnet_decoder_create(model, &options, &decoder, &err) || linnet_decode(model, &sound, decoder, &result, &err)) return 1;
    } else if (linnet_aligner_create(model, NULL, &aligner, &err) || linnet_align(aligner, &sound, how, &result, &err)) {
        return 1;
    }
    if (linnet_result_format(result, "json", &format, &text, NULL, &err)) return 1;
    fputs(text, stdout);
    linnet_free(text);
    linnet_result_destroy(result);
    linnet_aligner_destroy(aligner);
    linnet_decoder_destroy(decoder);
    linnet_model_destroy(model);
    return 0;
}
END
compile shared "$tmp/json" "$tmp/json.c" 2> "$tmp/log" || fail "a program against the library" "$(cat "$tmp/log")"
for sound in speech stereo; do
    run transcribe --quiet -f json "$tmp/$sound.wav"
    is "JSON of $sound.wav, greedy" "$out" "$("$tmp/json" "$tmp/$sound.wav" $sound greedy)"
    run transcribe --quiet -f json --lm phones.lm -n 3 "$tmp/$sound.wav"
    is "JSON of $sound.wav, a beam and alternatives" "$out" "$("$tmp/json" "$tmp/$sound.wav" $sound beam)"
    run transcribe --quiet -f json --no-readable --words "$tmp/$sound.wav"
    is "JSON of $sound.wav, words" "$out" "$("$tmp/json" "$tmp/$sound.wav" $sound words)"
    run align --quiet -f json -t "hello there" "$tmp/$sound.wav"
    is "JSON of $sound.wav, aligned" "$out" "$("$tmp/json" "$tmp/$sound.wav" $sound "hello there")"
done

# ---- the examples, shared and static ----
is "the examples are short" "" "$(wc -l examples/*.c | awk '$2 != "total" && $1 > 60')"
is "and include nothing of the project but linnet.h" "" "$(grep '#include "' examples/*.c)"
try() {
    name=$1
    shift
    for how in shared static; do
        if compile $how "$usr/bin/$name-$how" "$usr/share/doc/linnet/examples/$name.c" 2> "$tmp/log"; then pass; else fail "$name, $how" "$(cat "$tmp/log")"; continue; fi
        "$usr/bin/$name-$how" "$@" > "$tmp/$name-$how.out" 2> "$tmp/$name-$how.err"
        is "$name, $how: exit status" 0 $?
    done
    is "$name: the same from both libraries" "$(sort "$tmp/$name-shared.out")" "$(sort "$tmp/$name-static.out")"
}
try file "$tmp/speech.wav"
run transcribe --quiet --no-readable --words "$tmp/speech.wav"
is "file: the words" "$out" "$(head -n 1 "$tmp/file-shared.out")"
try align "$tmp/speech.wav" "hello there"
has "align: words" "$(cat "$tmp/align-shared.out")" "there"
has "align: phonemes" "$(cat "$tmp/align-shared.out")" "goodness"
try many "$tmp/speech.wav"
run transcribe --quiet "$tmp/speech.wav"
is "many: a hundred streams" 100 "$(sed 's/:.*//' "$tmp/many-shared.out" | sort -u | wc -l | tr -d ' ')"
is "many: each with the phonemes of the file" "$out" \
    "$(awk -F': ' '{ said[$1] = said[$1] (said[$1] ? " " : "") $2 } END { for (s in said) print said[s] }' "$tmp/many-shared.out" | sort -u)"
run transcribe --quiet --no-readable --words "$tmp/speech.wav"
if pkg-config --exists portaudio-2.0; then
    for how in shared static; do
        ok "live_portaudio, $how" compile $how "$tmp/live" examples/live_portaudio.c "$(pkg-config --cflags --libs portaudio-2.0)"
    done
fi
if command -v cmake > /dev/null; then
    for static in OFF ON; do
        ok "cmake configures the examples, LINNET_STATIC=$static" cmake -S "$usr/share/doc/linnet/examples" -B "$tmp/cmake-$static" \
            -DCMAKE_PREFIX_PATH="$usr" -DLINNET_STATIC=$static
        ok "cmake builds them" cmake --build "$tmp/cmake-$static"
        is "and they run" "$out" "$(LINNET_MODEL=$top/share/linnet/en/default.safetensors LINNET_LEXICON=$top/share/linnet/en/words.dict.gz \
            LINNET_LM=$top/share/linnet/en/words.lm LINNET_G2P=$top/share/linnet/en/words.g2p "$tmp/cmake-$static/file" "$tmp/speech.wav" | head -n 1)"
    done
fi
finish
