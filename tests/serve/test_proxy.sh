# linnet serve behind a proxy: whom it asks for, the page's own origin, refusals of large bodies, streams; through nginx with the
# example of recipes/serve. Its own log: a line for each stream and upload, without tokens. Over the loopback interface.
. tests/app/common.sh
. tests/app/serving.sh

printf 'secret token 0001\n' > "$tmp/tokens"
token='access_token=secret%20token%200001'
bearer='header=Authorization: Bearer secret token 0001'
end='{"type":"end"}'
call=/v1/audio/transcriptions

# ---- whom a proxy asks for

start trusted --no-words -j 1 --tokens "$tmp/tokens" --trusted-proxy 127.0.0.1 --limits max-per-address=1,max-upload=1
held() {
    "$TALK" "$port" stream /v1/stream "$bearer" "header=$1" hold="$tmp/never" > /dev/null &
    holder=$!
    ok "a stream is open" await metric_is streams 1
}
held 'X-Forwarded-For: 192.0.2.9, 198.51.100.7'
is "another stream of this client" "refused 429
retry-after" "$(talk stream /v1/stream "$bearer" 'header=X-Forwarded-For: 198.51.100.7' end="$end")"
is "the same by Forwarded" "refused 429
retry-after" "$(talk stream /v1/stream "$bearer" 'header=Forwarded: for="198.51.100.7:80";proto=https' end="$end")"
is "another client of the proxy" "closed 1000 " "$(talk stream /v1/stream "$bearer" 'header=X-Forwarded-For: 198.51.100.8' end="$end" | tail -n 1)"
kill $holder
ok "the stream is gone" await metric_is streams 0
has "an upload" "$(talk post $call "$bearer" 'header=X-Forwarded-For: 2001:db8::1' file=@"$speech")" "HTTP/1.1 200"
has "an upload that is refused" "$(talk post $call 'header=X-Forwarded-For: 198.51.100.9' file=@"$speech")" "HTTP/1.1 401"
has "the page's origin, where the proxy leaves the port out" "$(talk stream /v1/stream "$bearer" 'header=Origin: http://localhost:1234' end="$end")" "closed 1000"
is "another origin" "refused 403" "$(talk stream /v1/stream "$bearer" 'header=Origin: http://evil.example:1234' end="$end")"
stop "trusted"
has "log: a stream that was refused" "$(cat "$log")" "linnet: stream from 198.51.100.7 at /v1/stream: 429 too many streams and uploads from this address, 0.0 s of sound"
has "log: a stream" "$(cat "$log")" "linnet: stream from 198.51.100.8 at /v1/stream: 1000 ended, 0.0 s of sound in "
has "log: a client that left" "$(cat "$log")" "linnet: stream from 198.51.100.7 at /v1/stream: 0 the client left"
has "log: an upload" "$(cat "$log")" "linnet: upload from 2001:db8::1 at $call: 200 ended, 3.0 s of sound in "
has "log: an upload that was refused" "$(cat "$log")" "linnet: upload from 198.51.100.9 at $call: 401 a valid token is needed"
hasnt "log: no token" "$(cat "$log")" "secret"
is "log: nothing else" "" "$(grep -vE '^linnet: (stream|upload) from|serving at|stopping: ' "$log")"

start untrusted --no-words -j 1 --limits max-per-address=1 --log json
held 'X-Forwarded-For: 198.51.100.7'
is "who is no proxy cannot say who asks" "refused 429
retry-after" "$(talk stream /v1/stream 'header=X-Forwarded-For: 198.51.100.8' end="$end")"
kill $holder
ok "the stream is gone" await metric_is streams 0
talk stream "/v1/stream?$token" raw="$tmp/speech.raw" end="$end" > /dev/null
has "a mistake" "$(talk post $call file=@"$tmp/tokens")" "HTTP/1.1 400"
stop "untrusted"
has "log in JSON: a stream" "$(cat "$log")" '"event":"stream","address":"127.0.0.1","path":"/v1/stream","status":1000,"cause":"ended","sound_s":2.9'
has "log in JSON: an upload with a mistake" "$(cat "$log")" '"event":"upload","address":"127.0.0.1","path":"'$call'","status":400,"cause":"the file is not an audio file'
has "log in JSON: other lines" "$(cat "$log")" '"message":"serving at http'
is "log in JSON: every line" "" "$(grep -v '^{"time":"[0-9-]*T[0-9:]*Z",.*}$' "$log")"
hasnt "log in JSON: no token" "$(cat "$log")" "secret"
if command -v python3 > /dev/null; then
    ok "log in JSON: it is" sh -c 'while read -r l; do printf %s "$l" | python3 -m json.tool || exit 1; done < "$1"' - "$log"
fi

# ---- through nginx

nginx=$(command -v nginx || command -v /usr/sbin/nginx)
if [ -z "$nginx" ]; then
    echo "skipped: no nginx"
    finish
fi
start proxied --no-words -j 1 --tokens "$tmp/tokens" --trusted-proxy 127.0.0.1 --limits max-upload=1
behind=$port
n=$tmp/nginx
mkdir "$n"
# The example, without TLS, as any user, on any port that is free, in this folder.
sed "s,listen 443 ssl,listen 127.0.0.1:PORT,; /ssl_certificate/d; s,server_name .*,server_name localhost;,; s,127.0.0.1:8090,127.0.0.1:$behind,; s,/var/log/nginx,$n," \
    recipes/serve/nginx.conf > "$n/linnet.conf.in"
cat > "$n/nginx.conf" <<END
daemon off;
pid $n/pid;
error_log $n/error.log;
events { worker_connections 64; }
http {
    keepalive_timeout 0; # the client reads until the end
    client_body_temp_path $n/body;
    proxy_temp_path $n/proxy;
    fastcgi_temp_path $n/fastcgi;
    uwsgi_temp_path $n/uwsgi;
    scgi_temp_path $n/scgi;
    include $n/linnet.conf;
}
END
[ "$(id -u)" != 0 ] || sed -i "1i user root;" "$n/nginx.conf" # its workers enter this folder
listens_too() { grep -q . "$n/pid" 2> /dev/null && talk get /healthz | grep -q ok || runs_no_more $proxy; }
for port in $((20000 + $$ % 20000)) $((20001 + $$ % 20000)) $((40002 + $$ % 20000)) $((40003 + $$ % 20000)); do
    sed "s/PORT/$port/" "$n/linnet.conf.in" > "$n/linnet.conf"
    "$nginx" -p "$n" -e "$n/error.log" -c "$n/nginx.conf" > "$n/out" 2>&1 &
    proxy=$!
    servers="$servers $proxy"
    await listens_too
    ! runs_no_more $proxy || continue
    break
done
has "through nginx: it serves" "$(talk get /healthz)" "ok"
has "through nginx: the page" "$(talk get /)" "<title>linnet</title>"
has "through nginx: an upload" "$(talk post $call "$bearer" file=@"$speech")" '"text":"'
has "through nginx: in chunks" "$(talk post $call "$bearer" chunked file=@"$speech")" '"text":"'
talk stream "/v1/stream?$token" raw="$tmp/speech.raw" end="$end" > "$tmp/stream"
is "through nginx: a stream" "$("$LINNET" transcribe -q "$speech")" "$(texts "$tmp/stream")"
is "through nginx: the page's own origin" "closed 1000 " "$(talk stream /v1/stream "$bearer" "header=Origin: http://localhost" end="$end" | tail -n 1)"
head -c 8000000 /dev/zero > "$tmp/large"
has "through nginx: a refusal of a large upload" "$(talk post $call file=@"$tmp/large")" "HTTP/1.1 401"
has "through nginx: an upload that is too large" "$(talk post $call "$bearer" file=@"$tmp/large")" "HTTP/1.1 413"
hasnt "through nginx: nobody is believed" "$(talk get /healthz 'header=X-Forwarded-For: 198.51.100.7' 'header=Forwarded: for=198.51.100.7'; cat "$log")" "198.51.100.7"
kill $proxy
wait $proxy
hasnt "nginx's log: no token" "$(cat "$n/linnet.log")" "secret"
has "nginx's log: the stream" "$(cat "$n/linnet.log")" '"GET /v1/stream" 101'
port=$behind
stop "proxied"
finish
