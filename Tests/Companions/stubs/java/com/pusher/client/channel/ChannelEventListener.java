package com.pusher.client.channel;

/** A stub of pusher-websocket-java 2.4, from its documentation. */
public interface ChannelEventListener extends SubscriptionEventListener {
    void onSubscriptionSucceeded(String channelName);
    default void onSubscriptionCountChanged(String channelName, Integer subscriptionCount) {}
}
