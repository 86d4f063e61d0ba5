import androidx.lifecycle.DefaultLifecycleObserver
import androidx.lifecycle.LifecycleOwner
import androidx.lifecycle.ProcessLifecycleOwner
import com.pusher.client.Pusher
import com.pusher.client.channel.PrivateChannelEventListener
import java.io.IOException
import java.lang.reflect.InvocationTargetException
import java.lang.reflect.Proxy
import java.net.HttpURLConnection
import java.net.URL
import java.util.concurrent.CompletableFuture

/** Tells the hub whether the app is on the screen, and confirms notifications. Made and ended on the main thread. */
class Tandem(private val pusher: Pusher, private val channel: String, private val hub: String, private val token: () -> String) :
    DefaultLifecycleObserver {
    @Volatile private var state = "background"

    init {
        ProcessLifecycleOwner.get().lifecycle.addObserver(this) // Calls onStart at once if the app is on the screen.
    }

    /** The listener to subscribe with: it passes everything on to yours, and tells the state after each subscription. */
    fun <L : PrivateChannelEventListener> listener(kind: Class<L>, yours: L): L =
        kind.cast(Proxy.newProxyInstance(kind.classLoader, arrayOf<Class<*>>(kind)) { _, method, arguments ->
            if (method.name == "onSubscriptionSucceeded") say()
            try {
                method.invoke(yours, *(arguments ?: emptyArray<Any>()))
            } catch (error: InvocationTargetException) {
                throw error.targetException
            }
        })

    /** Confirms a notification by the `nid` of its data. False if the hub did not take it. */
    fun received(nid: String): CompletableFuture<Boolean> = call("POST", "/me/receipts", """{"nid":"$nid","status":"received"}""")

    /** Registers the FCM token: at every start and when it changes. Null: the person wants no notifications. */
    fun pushToken(fcm: String?): CompletableFuture<Boolean> {
        val device = if (fcm == null) "" else """"token":"$fcm","platform":"android","""
        return call("PUT", "/me/device", """{$device"notifications":${fcm != null}}""")
    }

    /** At a logout, before the token is thrown away: what comes from now on is pushed. */
    fun end() {
        ProcessLifecycleOwner.get().lifecycle.removeObserver(this)
        tell("background")
    }

    override fun onStart(owner: LifecycleOwner) = tell("foreground")
    override fun onStop(owner: LifecycleOwner) = tell("background")

    private fun tell(now: String) {
        state = now
        say()
        // The request may come in last although the app is back on the screen.
        if (now == "background") call("PUT", "/me/state", json()).thenRun { if (state == "foreground") say() }
    }

    private fun json() = """{"state":"$state"}"""

    private fun say() = try {
        val to = if (channel.startsWith("presence-")) pusher.getPresenceChannel(channel) else pusher.getPrivateChannel(channel)
        if (to != null && to.isSubscribed) to.trigger("client-app-state", json()) else Unit
    } catch (lost: IllegalStateException) { /* The next subscription says it. */ }

    private fun call(method: String, path: String, body: String): CompletableFuture<Boolean> =
        CompletableFuture.supplyAsync {
            try {
                val request = URL(hub + path).openConnection() as HttpURLConnection
                request.requestMethod = method
                request.setRequestProperty("Authorization", "Bearer ${token()}")
                request.setRequestProperty("Content-Type", "application/json")
                request.doOutput = true
                request.outputStream.use { it.write(body.toByteArray()) }
                request.responseCode == 200
            } catch (error: IOException) { false }
        }
}
