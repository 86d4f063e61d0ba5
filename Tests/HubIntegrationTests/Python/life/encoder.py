"""FCM messages as Firebase's own encoder writes them, to compare Tandem's with.

`encoder.py cases` prints what a backend would ask for; `encoder.py check FILE` reads Tandem's bodies, one for each case, and says where
they differ from what firebase-admin makes of the same message. The right sides below are in firebase-admin's terms, with what Tandem adds
by its documented rules: ids, time to live, priorities, replacement keys, and an alert that is spelled out for Apple.
"""

import datetime
import json
import sys
import warnings

from firebase_admin import _messaging_encoder, messaging

warnings.simplefilter("ignore")

NID = "4d0a6f6e-8e6c-4a1b-9a53-0d1f6f0a9c11"
EVENT = "0e2f8f7e-52f0-4d5a-93a4-6f6f6f6f6f6f"
COMMITTED, EXPIRES = 1767920398500, 1767921000000
TTL = 600
GROUP = "g.q17"
IDENTITY = {"nid": NID, "event_id": EVENT, "seq": "42", "ts": str(COMMITTED)}
SHOWN = {"title": "T 🎯", "body": "B"}
CASES = []


def case(name, request, *, platform="android", form="token", group=GROUP, note=SHOWN, data=None, android=None, config=None,
         aps=None, alert=None, headers=None, custom=None, apns=None, web=None, label=None, shown=True):
    """One message: what is asked for, and the same in firebase-admin's terms.

    note: the common notification; android: AndroidNotification's members; config: AndroidConfig's; aps, alert: members of Aps, ApsAlert.
    """
    many = form in ("topic", "condition")
    text = {"token": "TOKEN", "fid": "FID", "topic": "news", "condition": "'a' in topics && 'b' in topics"}[form]
    members = {"data": {**(data or {}), **IDENTITY}, form: text}
    if shown and note:
        members["notification"] = messaging.Notification(**note)
    settings = {"ttl": TTL, "priority": "high" if shown else "normal", **(config or {})}
    if shown:
        shown_by_android = {**({"tag": group} if group else {}), **(android or {})}
        if shown_by_android:
            settings["notification"] = messaging.AndroidNotification(**shown_by_android)
    elif group:
        settings.setdefault("collapse_key", group)
    members["android"] = messaging.AndroidConfig(**settings)
    if many or platform == "ios":
        members["apns"] = apple(group, note, aps, alert, headers, custom, apns or {}, shown)
    if many or platform == "web":
        members["webpush"] = browser(group, shown, web or {})
    if label:
        members["fcm_options"] = messaging.FCMOptions(analytics_label=label)
    expected = json.loads(json.dumps(messaging.Message(**members), cls=_messaging_encoder.MessageEncoder))
    CASES.append({"name": name, "request": request, "platform": platform, "form": form, "target": text, "group": group, "expected": expected})


def apple(group, note, aps, alert, headers, custom, rest, shown):
    all_headers = {"apns-push-type": "alert" if shown else "background", "apns-priority": "10" if shown else "5",
                   "apns-expiration": str(EXPIRES // 1000), **({"apns-collapse-id": group} if group else {}), **(headers or {})}
    members = dict(aps or {})
    if shown:
        text = {key: value for key, value in note.items() if key != "image"}
        members["alert"] = messaging.ApsAlert(**{**text, **(alert or {})})
        if "image" in note:
            members.setdefault("mutable_content", True)
            rest = {"fcm_options": messaging.APNSFCMOptions(image=note["image"]), **rest}
    else:
        members["content_available"] = True
    return messaging.APNSConfig(headers=all_headers, payload=messaging.APNSPayload(messaging.Aps(**members), **(custom or {})), **rest)


def browser(group, shown, rest):
    headers = {"TTL": str(TTL), "Urgency": "high" if shown else "normal", **rest.pop("headers", {})}
    if group:
        headers.setdefault("Topic", rest.pop("topic"))
    return messaging.WebpushConfig(headers=headers, **rest)


# 32 URL-safe characters stand for a group that has others.
import base64, hashlib  # noqa: E402

TOPIC = base64.urlsafe_b64encode(hashlib.sha256(GROUP.encode()).digest()).decode()[:32]
N = {"notification": SHOWN}


def asks(**members):
    return {**N, **members}


# What every platform gets.
case("title and body", N)
case("title alone", {"notification": {"title": "T"}}, note={"title": "T"})
case("an empty body stays", {"notification": {"title": "T", "body": ""}}, note={"title": "T", "body": ""})
case("a picture", {"notification": {**SHOWN, "image": "https://x/y.png"}}, note={**SHOWN, "image": "https://x/y.png"})
case("no group", N, group=None)
case("numbers, truth and objects become text", asks(data={"id": 7, "ok": True, "half": 0.5, "none": None, "empty": "", "p": {"b": 1, "a": [1, None]}}),
     data={"id": "7", "ok": "true", "half": "0.5", "empty": "", "p": '{"a":[1,null],"b":1}'})
case("a label", asks(fcm_options={"analytics_label": "quiz_1.a~%"}), label="quiz_1.a~%")
case("data alone", {"data": {"a": 1}}, data={"a": "1"}, shown=False)
case("data alone without a group", {"data": {"a": ""}}, data={"a": ""}, shown=False, group=None)
case("a Firebase installation", N, form="fid")

# Android.
case("a channel", asks(android={"channel_id": "orders"}), android={"channel_id": "orders"})
case("the seed's LoopRail message", {
    "notification": SHOWN, "data": {"action": "NONE", "campaign_id": "", "campaign_name": ""},
    "android": {"priority": "high", "notification": {"channel_id": "default", "sound": "default", "color": "#4CAF50", "icon": "ic_notification"}},
    "apns": {"payload": {"aps": {"sound": "default", "badge": 1, "mutable-content": 1}}}},
    data={"action": "NONE", "campaign_id": "", "campaign_name": ""},
    android={"channel_id": "default", "sound": "default", "color": "#4CAF50", "icon": "ic_notification"})
case("delivered at normal priority", asks(android={"priority": "normal"}), config={"priority": "normal"})
case("shown at a priority", asks(android={"notification_priority": "PRIORITY_MAX"}), android={"priority": "max"})
case("shown at a priority, in short", asks(android={"notificationPriority": "low"}), android={"priority": "low"})
case("a text of Android's own", asks(android={"title": "A", "body": "C"}), android={"title": "A", "body": "C"})
case("texts from the app's resources", asks(android={"title_loc_key": "t", "title_loc_args": ["1"], "body_loc_key": "b", "body_loc_args": ["2", "3"]}),
     android={"title_loc_key": "t", "title_loc_args": ["1"], "body_loc_key": "b", "body_loc_args": ["2", "3"]})
case("light", asks(android={"light_settings": {"color": "#11223344", "light_on_duration": "0.5s", "light_off_duration": "1.5s"}}),
     android={"light_settings": messaging.LightSettings("#11223344", 500, 1500)})
case("light without a veil", asks(android={"lightSettings": {"color": "#4CAF50", "lightOnDuration": 1, "lightOffDuration": "2s"}}),
     android={"light_settings": messaging.LightSettings("#4CAF50", 1000, 2000)})
case("vibration", asks(android={"vibrate_timings": ["0s", "0.25s", 1]}), android={"vibrate_timings_millis": [0, 250, 1000]})
case("everything by default", asks(android={"default_sound": True, "default_vibrate_timings": False, "default_light_settings": True}),
     android={"default_sound": True, "default_vibrate_timings": False, "default_light_settings": True})
case("sticky, local, ticker, count", asks(android={"sticky": True, "local_only": False, "ticker": "tick", "notification_count": 0}),
     android={"sticky": True, "local_only": False, "ticker": "tick", "notification_count": 0})
for word in ("private", "public", "secret"):
    case(f"visibility {word}", asks(android={"visibility": word}), android={"visibility": word})
for word in ("allow", "deny", "if_priority_lowered"):
    case(f"proxy {word}", asks(android={"proxy": word.upper()}), android={"proxy": word})
case("the time of the event", asks(android={"event_time": "2026-01-09T01:00:00.250000Z"}),
     android={"event_timestamp": datetime.datetime(2026, 1, 9, 1, 0, 0, 250000)})
case("a click, a picture", asks(android={"click_action": "OPEN", "image": "https://x/a.png"}), android={"click_action": "OPEN", "image": "https://x/a.png"})
case("a tag of its own", asks(android={"tag": "mine"}), android={"tag": "mine"})
case("a shorter life", asks(android={"ttl": "60s"}), config={"ttl": 60})
case("AndroidConfig's other members", asks(android={
    "collapse_key": "c", "restricted_package_name": "com.example", "direct_boot_ok": True, "bandwidth_constrained_ok": False,
    "restricted_satellite_ok": True, "fcm_options": {"analytics_label": "a"}}),
    config={"collapse_key": "c", "restricted_package_name": "com.example", "direct_boot_ok": True, "bandwidth_constrained_ok": False,
            "restricted_satellite_ok": True, "fcm_options": messaging.AndroidFCMOptions("a")})
case("data of Android's own keeps the rest", asks(data={"a": 1}, android={"data": {"b": 2}}), data={"a": "1"},
     config={"data": {"a": "1", "b": "2", **IDENTITY}})
case("sendToDevice's options", asks(priority="high", contentAvailable=True))

# Apple's devices through FCM.
case("an alert", N, platform="ios")
case("sound, badge, thread, category", asks(apns={"sound": "default", "badge": 0, "thread-id": "t", "category": "c"}), platform="ios",
     aps={"sound": "default", "badge": 0, "thread_id": "t", "category": "c"})
case("a critical sound", asks(apns={"sound": {"critical": True, "name": "s", "volume": 0.5}}), platform="ios",
     aps={"sound": messaging.CriticalSound("s", critical=True, volume=0.5)})
case("subtitle and launch image", asks(apns={"alert": {"subtitle": "S", "launch-image": "l"}}), platform="ios", alert={"subtitle": "S", "launch_image": "l"})
case("texts from the bundle", asks(apns={"alert": {"loc-key": "k", "loc-args": ["1"], "title-loc-key": "t", "title-loc-args": ["2"]}}), platform="ios",
     alert={"loc_key": "k", "loc_args": ["1"], "title_loc_key": "t", "title_loc_args": ["2"]})
case("a subtitle from the bundle", asks(apns={"alert": {"subtitle-loc-key": "k", "subtitle-loc-args": ["1"]}}), platform="ios",
     alert={"custom_data": {"subtitle-loc-key": "k", "subtitle-loc-args": ["1"]}})
case("an alert that also wakes the app", asks(apns={"content-available": 1, "mutable-content": True}), platform="ios",
     aps={"content_available": True, "mutable_content": True})
case("levels and scores", asks(apns={"interruption-level": "time-sensitive", "relevance-score": 0.5, "filter-criteria": "f", "target-content-id": "w"}),
     platform="ios", aps={"custom_data": {"interruption-level": "time-sensitive", "relevance-score": 0.5, "filter-criteria": "f", "target-content-id": "w"}})
case("FCM's own form, with members beside aps", asks(apns={"headers": {"apns-priority": "5"}, "payload": {"aps": {"sound": "s"}, "order": {"id": 7}}}),
     platform="ios", headers={"apns-priority": "5"}, aps={"sound": "s"}, custom={"order": {"id": 7}})
case("a picture for Apple", {"notification": {**SHOWN, "image": "https://x/y.png"}}, platform="ios", note={**SHOWN, "image": "https://x/y.png"})
case("another picture for Apple, and a label", {"notification": {**SHOWN, "image": "https://x/y.png"},
     "apns": {"fcm_options": {"image": "https://x/z.png", "analytics_label": "l"}}}, platform="ios", note={**SHOWN, "image": "https://x/y.png"},
     apns={"fcm_options": messaging.APNSFCMOptions(analytics_label="l", image="https://x/z.png")})
case("a background push", {"data": {"a": 1}}, platform="ios", data={"a": "1"}, shown=False)
case("a Live Activity", asks(live_activity={"token": "abcd", "event": "update", "timestamp": 5, "content-state": {"score": 3}, "stale-date": 9}), platform="ios",
     headers={"apns-push-type": "liveactivity"},
     aps={"custom_data": {"event": "update", "timestamp": 5, "content-state": {"score": 3}, "stale-date": 9}}, apns={"live_activity_token": "abcd"})
case("a Live Activity's start", asks(live_activity={"token": "abcd", "event": "start", "timestamp": 5, "content-state": {"s": 1}, "attributes-type": "Quiz",
     "attributes": {"name": "n"}}), platform="ios", headers={"apns-push-type": "liveactivity"},
     aps={"custom_data": {"event": "start", "timestamp": 5, "content-state": {"s": 1}, "attributes-type": "Quiz", "attributes": {"name": "n"}}},
     apns={"live_activity_token": "abcd"})

# Browsers, and everybody at once.
case("a browser", N, platform="web", web={"topic": TOPIC})
case("a browser's own notification", asks(webpush={"notification": {"icon": "i", "requireInteraction": True}, "fcm_options": {"link": "https://x"}}),
     platform="web", web={"topic": TOPIC, "notification": messaging.WebpushNotification(icon="i", require_interaction=True, tag=GROUP, **SHOWN),
                          "fcm_options": messaging.WebpushFCMOptions("https://x")})
case("a browser's headers and data", asks(data={"a": 1}, webpush={"headers": {"TTL": "5", "Urgency": "low", "Topic": "t"}, "data": {"b": 2}}), platform="web",
     data={"a": "1"}, web={"headers": {"TTL": "5", "Urgency": "low", "Topic": "t"}, "data": {"a": "1", "b": "2", **IDENTITY}, "topic": TOPIC})
case("a topic", N, form="topic", web={"topic": TOPIC})
case("a topic's silent data", {"data": {"a": "b"}}, form="topic", data={"a": "b"}, shown=False, web={"topic": TOPIC})
case("a condition with all blocks", asks(android={"channel_id": "c"}, apns={"sound": "default"}, fcm_options={"analytics_label": "l"}), form="condition",
     android={"channel_id": "c"}, aps={"sound": "default"}, label="l", web={"topic": TOPIC})


def plain(value, name=""):
    """The value with the spellings that proto3 JSON reads alike made one."""
    if isinstance(value, dict):
        return {key: plain(member, key) for key, member in value.items()}
    if isinstance(value, list):
        return [plain(element, name) for element in value]
    if name == "priority" and isinstance(value, str):
        return value.upper()
    if name in ("vibrate_timings", "light_on_duration", "light_off_duration", "ttl"):
        return float(value.removesuffix("s"))
    return value


def check(path):
    with open(path) as file:
        bodies = json.load(file)
    differing = []
    for wanted in CASES:
        found = plain(bodies[wanted["name"]])
        expected = {"message": plain(wanted["expected"])}
        if found != expected:
            differing.append({"case": wanted["name"], "tandem": found, "firebase": expected})
    print(json.dumps({"checked": len(CASES), "differing": differing}, ensure_ascii=False))


if __name__ == "__main__":
    if sys.argv[1] == "cases":
        print(json.dumps([{key: value for key, value in case.items() if key != "expected"} for case in CASES]))
    else:
        check(sys.argv[2])
