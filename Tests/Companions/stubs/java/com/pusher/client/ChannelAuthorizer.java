package com.pusher.client;

/** A stub of pusher-websocket-java 2.4, from its documentation. */
public interface ChannelAuthorizer {
    String authorize(String channelName, String socketId);
}
