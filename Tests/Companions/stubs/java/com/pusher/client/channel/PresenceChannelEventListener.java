package com.pusher.client.channel;

import java.util.Set;

/** A stub of pusher-websocket-java 2.4, from its documentation. */
public interface PresenceChannelEventListener extends PrivateChannelEventListener {
    void onUsersInformationReceived(String channelName, Set<User> users);
    void userSubscribed(String channelName, User user);
    void userUnsubscribed(String channelName, User user);
}
