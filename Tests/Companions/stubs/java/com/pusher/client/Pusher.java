package com.pusher.client;

import com.pusher.client.channel.*;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.WebSocket;
import java.util.*;
import java.util.concurrent.*;
import java.util.regex.*;

/**
 * A stub of pusher-websocket-java 2.4, from its documentation: one presence or private channel on a real socket. Callbacks come on a
 * thread of their own. Events that were not named when subscribing reach nobody. The connection comes back after it was lost.
 */
public class Pusher {
    private final ScheduledExecutorService eventThread = Executors.newSingleThreadScheduledExecutor();
    private final String key;
    private final PusherOptions options;
    private volatile Subscribed channel;
    private volatile WebSocket socket;
    private volatile boolean isLeaving;

    public Pusher(String key, PusherOptions options) {
        this.key = key;
        this.options = options;
    }

    public void connect() {
        URI address = URI.create(
            "ws://" + options.host + ":" + options.port + "/app/" + key + "?client=java-client&protocol=5&version=2.4.4");
        HttpClient.newHttpClient().newWebSocketBuilder().buildAsync(address, new Frames()).whenComplete((opened, error) -> {
            if (error != null) lost(); else socket = opened;
        });
    }

    public void disconnect() {
        isLeaving = true;
        drop();
    }

    /** The test's: the network goes, without a close frame. */
    public void drop() {
        if (socket != null) socket.abort();
        lost();
    }

    public PresenceChannel subscribePresence(String name, PresenceChannelEventListener listener, String... eventNames) {
        if (!name.startsWith("presence-")) throw new IllegalArgumentException(name);
        return channel = new Subscribed(name, listener, eventNames);
    }

    public PrivateChannel subscribePrivate(String name, PrivateChannelEventListener listener, String... eventNames) {
        if (!name.startsWith("private-")) throw new IllegalArgumentException(name);
        return channel = new Subscribed(name, listener, eventNames);
    }

    /** Null if there is none. */
    public PresenceChannel getPresenceChannel(String name) {
        if (!name.startsWith("presence-")) throw new IllegalArgumentException(name);
        return channel;
    }

    /** Null if there is none. */
    public PrivateChannel getPrivateChannel(String name) {
        if (!name.startsWith("private-")) throw new IllegalArgumentException(name);
        return channel;
    }

    private synchronized void lost() {
        if (channel != null) channel.isSubscribed = false;
        socket = null;
        if (!isLeaving) eventThread.schedule(this::connect, 200, TimeUnit.MILLISECONDS);
    }

    private void take(String text) {
        String event = member(text, "event"), data = member(text, "data");
        if (event.equals("pusher:connection_established")) {
            String auth = options.authorizer.authorize(channel.name, member(data, "socket_id"));
            String rest = auth.substring(auth.indexOf('{') + 1);
            socket.sendText("{\"event\":\"pusher:subscribe\",\"data\":{\"channel\":\"" + channel.name + "\"," + rest + "}", true);
        } else if (event.equals("pusher_internal:subscription_succeeded")) {
            channel.isSubscribed = true;
            eventThread.execute(() -> channel.listener.onSubscriptionSucceeded(channel.name));
        } else if (channel.eventNames.contains(event)) {
            eventThread.execute(() -> channel.listener.onEvent(new PusherEvent(event, data)));
        }
    }

    /** A member that is a string; empty if there is none. Knows the escapes that the hub's frames have in these tests. */
    private static String member(String json, String name) {
        Matcher found = Pattern.compile("\"" + name + "\":\\s*\"((?:[^\"\\\\]|\\\\.)*)\"").matcher(json);
        return found.find() ? found.group(1).replace("\\\"", "\"").replace("\\\\", "\\") : "";
    }

    private final class Frames implements WebSocket.Listener {
        private final StringBuilder text = new StringBuilder();

        @Override public CompletionStage<?> onText(WebSocket from, CharSequence part, boolean isLast) {
            text.append(part);
            if (isLast) {
                String whole = text.toString();
                text.setLength(0);
                socket = from;
                take(whole);
            }
            from.request(1);
            return null;
        }

        @Override public CompletionStage<?> onClose(WebSocket from, int code, String reason) {
            if (from == socket) lost();
            return null;
        }

        @Override public void onError(WebSocket from, Throwable error) {
            if (from == socket) lost();
        }
    }

    private final class Subscribed implements PresenceChannel {
        final String name;
        final PrivateChannelEventListener listener;
        final Set<String> eventNames;
        volatile boolean isSubscribed;

        Subscribed(String name, PrivateChannelEventListener listener, String[] eventNames) {
            this.name = name;
            this.listener = listener;
            this.eventNames = Set.of(eventNames);
        }

        @Override public String getName() {
            return name;
        }

        @Override public boolean isSubscribed() {
            return isSubscribed;
        }

        @Override public void trigger(String eventName, String data) {
            if (!eventName.startsWith("client-")) throw new IllegalArgumentException(eventName);
            WebSocket open = socket;
            if (!isSubscribed || open == null) throw new IllegalStateException("not subscribed, or not connected");
            open.sendText("{\"event\":\"" + eventName + "\",\"channel\":\"" + name + "\",\"data\":" + data + "}", true);
        }
    }
}
