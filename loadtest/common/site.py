"""A web server of pages: a page, the client library, and the backend's signatures."""

import hashlib
import hmac
import http.server
import json
import os
import threading
import urllib.parse

STAND_IN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stand-in.js")


def serve(page, key, secret):
    """Serves the page and its library on a free port; PUSHER_JS names another library than the stand-in."""

    class Site(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            path = {"/": page, "/pusher.js": os.environ.get("PUSHER_JS") or STAND_IN}.get(urllib.parse.urlsplit(self.path).path)
            if not path:
                return self.send_error(404)
            with open(path, "rb") as file:
                self.answer("text/html" if path.endswith("html") else "text/javascript", file.read())

        def do_POST(self):
            [user] = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)["user"]
            form = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
            member = json.dumps({"user_id": user, "user_info": {}})
            text = f"{form['socket_id']}:{form['channel_name']}:{member}"
            signature = hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()
            self.answer("application/json", json.dumps({"auth": f"{key}:{signature}", "channel_data": member}).encode())

        def answer(self, kind, body):
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
