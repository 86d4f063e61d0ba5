package com.pusher.client.channel;

/** A stub of pusher-websocket-java 2.4, from its documentation. */
public class PusherEvent {
    private final String eventName, data;

    public PusherEvent(String eventName, String data) {
        this.eventName = eventName;
        this.data = data;
    }

    public String getEventName() {
        return eventName;
    }

    public String getData() {
        return data;
    }
}
