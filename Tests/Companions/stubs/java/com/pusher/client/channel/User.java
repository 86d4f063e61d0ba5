package com.pusher.client.channel;

/** A stub of pusher-websocket-java 2.4, from its documentation. */
public class User {}
