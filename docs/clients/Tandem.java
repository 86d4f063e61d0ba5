import androidx.lifecycle.*;
import com.pusher.client.Pusher;
import com.pusher.client.channel.*;
import java.io.*;
import java.lang.reflect.*;
import java.net.HttpURLConnection;
import java.net.URL;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

/** Tells the hub whether the app is on the screen, and confirms notifications. Made and ended on the main thread. */
public final class Tandem implements DefaultLifecycleObserver {
    private final Pusher pusher;
    private final String channel, hub;
    private final Supplier<String> token;
    private volatile String state = "background";

    public Tandem(Pusher pusher, String channel, String hub, Supplier<String> token) {
        this.pusher = pusher; this.channel = channel; this.hub = hub; this.token = token;
        ProcessLifecycleOwner.get().getLifecycle().addObserver(this); // Calls onStart at once if the app is on the screen.
    }

    /** The listener to subscribe with: it passes everything on to yours, and tells the state after each subscription. */
    public <L extends PrivateChannelEventListener> L listener(Class<L> kind, L yours) {
        InvocationHandler passOn = (self, method, arguments) -> {
            if (method.getName().equals("onSubscriptionSucceeded")) say();
            try { return method.invoke(yours, arguments); } catch (InvocationTargetException error) { throw error.getCause(); }
        };
        return kind.cast(Proxy.newProxyInstance(kind.getClassLoader(), new Class<?>[] {kind}, passOn));
    }

    /** Confirms a notification by the `nid` of its data. False if the hub did not take it. */
    public CompletableFuture<Boolean> received(String nid) {
        return call("POST", "/me/receipts", "{\"nid\":\"" + nid + "\",\"status\":\"received\"}");
    }

    /** Registers the FCM token: at every start and when it changes. Null: the person wants no notifications. */
    public CompletableFuture<Boolean> pushToken(String fcm) {
        String device = fcm == null ? "{" : "{\"token\":\"" + fcm + "\",\"platform\":\"android\",";
        return call("PUT", "/me/device", device + "\"notifications\":" + (fcm != null) + "}");
    }

    /** At a logout, before the token is thrown away: what comes from now on is pushed. */
    public void end() {
        ProcessLifecycleOwner.get().getLifecycle().removeObserver(this);
        tell("background");
    }

    @Override public void onStart(LifecycleOwner owner) { tell("foreground"); }
    @Override public void onStop(LifecycleOwner owner) { tell("background"); }

    private void tell(String now) {
        state = now;
        say();
        // The request may come in last although the app is back on the screen.
        if (now.equals("background")) call("PUT", "/me/state", json()).thenRun(() -> { if (state.equals("foreground")) say(); });
    }

    private String json() { return "{\"state\":\"" + state + "\"}"; }
    private void say() {
        PrivateChannel to = channel.startsWith("presence-") ? pusher.getPresenceChannel(channel) : pusher.getPrivateChannel(channel);
        try {
            if (to != null && to.isSubscribed()) to.trigger("client-app-state", json());
        } catch (IllegalStateException lost) { /* The next subscription says it. */ }
    }

    private CompletableFuture<Boolean> call(String method, String path, String body) {
        return CompletableFuture.supplyAsync(() -> {
            try {
                HttpURLConnection request = (HttpURLConnection) new URL(hub + path).openConnection();
                request.setRequestMethod(method);
                request.setRequestProperty("Authorization", "Bearer " + token.get());
                request.setRequestProperty("Content-Type", "application/json");
                request.setDoOutput(true);
                try (OutputStream out = request.getOutputStream()) { out.write(body.getBytes("UTF-8")); }
                return request.getResponseCode() == 200;
            } catch (IOException error) { return false; }
        });
    }
}
