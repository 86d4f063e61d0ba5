package com.pusher.client;

/** A stub of pusher-websocket-java 2.4, from its documentation. */
public class PusherOptions {
    String host;
    int port;
    ChannelAuthorizer authorizer;

    public PusherOptions setHost(String host) {
        this.host = host;
        return this;
    }

    public PusherOptions setWsPort(int port) {
        this.port = port;
        return this;
    }

    public PusherOptions setUseTLS(boolean useTLS) {
        if (useTLS) throw new UnsupportedOperationException("the stub speaks ws only");
        return this;
    }

    public PusherOptions setChannelAuthorizer(ChannelAuthorizer authorizer) {
        this.authorizer = authorizer;
        return this;
    }
}
