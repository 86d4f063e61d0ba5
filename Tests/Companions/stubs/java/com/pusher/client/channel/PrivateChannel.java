package com.pusher.client.channel;

/** A stub of pusher-websocket-java 2.4, from its documentation. */
public interface PrivateChannel extends Channel {
    /** IllegalStateException without a subscription, and without a connection. */
    void trigger(String eventName, String data);
}
