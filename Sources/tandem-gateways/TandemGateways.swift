import ArgumentParser
import GatewaySimulators
import Glibc

/// `tandem-gateways`: simulated APNs and FCM for development and tests, on loopback.
@main
struct TandemGateways: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tandem-gateways",
        abstract: "Simulated APNs and FCM ends over TLS and HTTP/2, with scripted faults.",
        discussion: """
            Writes keys and settings into the data folder and serves until SIGTERM or SIGINT. To use it:

                tandem-gateways --data ./gateways &
                . ./gateways/gateways.env
                tandem serve

            What was sent is at $TANDEM_GATEWAYS_CONTROL/requests; PUT /faults/{token} there scripts an answer.
            """)

    @Option(help: "The folder for keys and settings; made when missing, its keys are used again.")
    var data = "./gateways"
    @Option(help: "The address to listen on.")
    var host = "127.0.0.1"
    @Option(help: "APNs' port; 0 for one chosen by the system.")
    var apnsPort: UInt16 = 0
    @Option(help: "The port of APNs' sandbox.")
    var apnsSandboxPort: UInt16 = 0
    @Option(help: "FCM's port, which also has the OAuth token endpoint.")
    var fcmPort: UInt16 = 0
    @Option(help: "The control API's port.")
    var controlPort: UInt16 = 0
    @Option(help: "The bundle id of the simulated app.")
    var topic = "com.example.app"

    func run() throws {
        // Blocked before any thread starts, so that only the wait below receives them.
        var ending = sigset_t()
        unsafe sigemptyset(&ending)
        unsafe sigaddset(&ending, SIGTERM)
        unsafe sigaddset(&ending, SIGINT)
        unsafe pthread_sigmask(SIG_BLOCK, &ending, nil)

        var options = SimulatedGateways.Options(folder: data)
        options.host = host
        options.apnsPort = apnsPort
        options.apnsSandboxPort = apnsSandboxPort
        options.fcmPort = fcmPort
        options.controlPort = controlPort
        options.topic = topic
        let gateways: SimulatedGateways
        do {
            gateways = try SimulatedGateways(options)
        } catch {
            Self.write("tandem-gateways: \(error)\n", to: STDERR_FILENO)
            throw ExitCode(1)
        }
        Self.write(
            """
            apns     \(gateways.apnsURL)
            sandbox  \(gateways.apnsSandboxURL)
            fcm      \(gateways.fcmURL)
            control  \(gateways.controlURL)
            settings \(gateways.files.environment)
            ready

            """, to: STDOUT_FILENO)
        var signal: Int32 = 0
        unsafe sigwait(&ending, &signal)
        gateways.stop()
    }

    /// Unbuffered, because the parent process waits for the line `ready`, which a pipe would hold back.
    private static func write(_ text: String, to descriptor: Int32) {
        let bytes = Array(text.utf8)
        var count = 0
        while count < bytes.count {
            let part = unsafe bytes.withUnsafeBytes {
                unsafe Glibc.write(descriptor, $0.baseAddress?.advanced(by: count), $0.count - count)
            }
            guard part > 0 else { return }
            count += part
        }
    }
}
