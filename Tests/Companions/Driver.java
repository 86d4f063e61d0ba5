import androidx.lifecycle.*;
import com.pusher.client.*;
import com.pusher.client.channel.*;
import java.io.*;
import java.net.URI;
import java.net.http.*;
import java.util.*;

/** The companion for Android as a program: Driver HUB KEY CHANNEL TOKEN. Each line of its input is a call, and is answered by a line. */
public final class Driver {
    private static final List<String> events = Collections.synchronizedList(new ArrayList<>());
    private static volatile String bearer;

    public static void main(String[] arguments) throws Exception {
        String hub = arguments[0], channel = arguments[2];
        bearer = arguments[3];
        URI address = URI.create(hub);
        Pusher pusher = new Pusher(arguments[1], new PusherOptions().setHost(address.getHost()).setWsPort(address.getPort()).setUseTLS(false)
            .setChannelAuthorizer((name, socket) -> authorize(hub, name, socket)));
        Tandem tandem = new Tandem(pusher, channel, hub, () -> bearer);
        PresenceChannelEventListener listener = tandem.listener(PresenceChannelEventListener.class, new Listener());
        if (channel.startsWith("presence-")) pusher.subscribePresence(channel, listener, "alarm", "news");
        else pusher.subscribePrivate(channel, listener, "alarm", "news");
        pusher.connect();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null;) {
            String[] words = line.split(" ");
            String argument = words.length > 1 ? words[1] : null;
            String answer = "done";
            switch (words[0]) {
                case "foreground": move(true); break;
                case "background": move(false); break;
                case "received": answer = tandem.received(argument).get().toString(); break;
                case "push-token": answer = tandem.pushToken(argument).get().toString(); break;
                case "bearer": bearer = argument; break;
                case "drop": pusher.drop(); break;
                case "events": answer = "[" + String.join(",", quoted(events)) + "]"; break;
                case "end": tandem.end(); break;
                case "leave": pusher.disconnect(); break;
                default: answer = "unknown";
            }
            System.out.println(answer);
        }
        System.exit(0);
    }

    private static void move(boolean isStarted) {
        ProcessLifecycleOwner.get().getLifecycle().move(isStarted);
    }

    private static List<String> quoted(List<String> texts) {
        List<String> quoted = new ArrayList<>();
        synchronized (texts) {
            for (String text : texts) quoted.add("\"" + text.replace("\\", "\\\\").replace("\"", "\\\"") + "\"");
        }
        return quoted;
    }

    private static String authorize(String hub, String channel, String socket) {
        try {
            HttpRequest request = HttpRequest.newBuilder(URI.create(hub + "/pusher/auth")).header("Authorization", "Bearer " + bearer)
                .POST(HttpRequest.BodyPublishers.ofString("socket_id=" + socket + "&channel_name=" + channel)).build();
            return HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).body();
        } catch (IOException | InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    /** The app's own. */
    private static final class Listener implements PresenceChannelEventListener {
        @Override public void onEvent(PusherEvent event) {
            events.add(event.getData());
        }

        @Override public void onSubscriptionSucceeded(String channelName) {
            System.out.println("subscribed");
        }

        @Override public void onAuthenticationFailure(String message, Exception error) {}
        @Override public void onUsersInformationReceived(String channelName, Set<User> users) {}
        @Override public void userSubscribed(String channelName, User user) {}
        @Override public void userUnsubscribed(String channelName, User user) {}
    }
}
