import HubCore
import HubDefinitions
import HubDelivery

/// A device and the person who holds it: what it does is nobody's business, and the hub learns only what comes over the wire.
struct SimDevice {
    enum Kind {
        /// Tells its state; suspended soon after it left the screen.
        case app
        /// Tells its state over HTTP, which keeps no order with its socket.
        case httpApp
        /// Says nothing.
        case stockApp
        /// Tells its state, and shows what comes in the background as well.
        case workingApp
        /// The same, said over HTTP.
        case httpWorkingApp
        /// A page that tells its state; frozen soon after it was hidden.
        case page
        case stockPage
        /// Stock clients that run on while nobody looks: beyond what receipts can tell.
        case unattendedPage, stockRunner

        var declares: Bool { self == .app || tellsOverHTTP || self == .workingApp || self == .page }
        var tellsOverHTTP: Bool { self == .httpApp || self == .httpWorkingApp }
        var showsUnseen: Bool { self == .workingApp || self == .httpWorkingApp }
        var isBrowser: Bool { self == .page || self == .stockPage || self == .unattendedPage }
        var runsUnseen: Bool { showsUnseen || self == .unattendedPage || self == .stockRunner }
    }

    enum Mode { case looking, hidden, suspended, gone }

    let person: Int
    let channel: Int
    let name: String
    let kind: Kind
    let hasToken: Bool
    /// The app is gone from it, and its gateway says so.
    var isUninstalled = false
    /// Comes and goes all the time.
    let flaps: Bool
    var mode = Mode.gone
    /// Changes with every change of mode, so that planned steps of an older one are dropped.
    var step = 0
    var connection: Int?
    /// Nothing passes before.
    var stalledUntil: Int64 = 0
    /// Read while nobody looked.
    var unseen: [Int] = []
    /// The connections that the delivery task knows of, in the order in which it learned of them.
    var attached: [Int] = []
    /// Connections that the app lost sight of, and that its network stack still answers.
    var leaks: [Int] = []
}

struct SimPerson {
    let name: String
    let channel: Int
    let devices: Range<Int>
    /// As the directory has them.
    var record: [Device]
    var role: String?
    /// Whether the session's roster has the person.
    var isOnRoster = true
    /// When the person left, joined or changed roles last.
    var changedAt = Int64.min / 2
}

struct SimChannel {
    let name: String
    let session: String
    let kind: SimKind
    /// Whether the directory has the session.
    var isLiving = true
    var people: [Int] = []
    var firstDevice = 0
    /// Devices of the channel end before this one.
    var endDevice = 0
}

enum Downstream {
    /// `replay`: the cursor after it; 0: it was written when it was published.
    case frame(Int, replay: UInt64)
    case ping(UInt64)
    /// An event, which only the page itself answers.
    case pagePing(UInt64)
}

enum Upstream {
    case subscribe
    case pong(UInt64, read: Int)
    case state(AppState, keepsWorking: Bool)
    case close
}

/// A socket with its two streams; bytes keep their order in each.
final class SimConnection {
    let id: ConnectionID
    let device: Int
    let life: Int
    var isOpenAtServer = true
    var isOpenAtClient = true
    var isCut = false
    /// The connection's end lies before a loop that is late.
    var endWaits = false
    var ticket: UInt64 = 0
    /// The loop's word on the roles that it stands for.
    var roles = RoleSet.unmatched
    var isSubscribed = false
    /// The app's word, as the loop knows it and as the delivery task knows it.
    var loopState: AppState = .unknown
    var loopKeepsWorking = false
    var attachedUserState: AppState = .unknown
    var keepsWorking = false
    var downAt: Int64 = 0
    var upAt: Int64 = 0
    /// Arrived, and not read by the program.
    var buffer: [Downstream] = []
    /// Events that the program has read, in order, and how many of them the hub has a receipt for.
    var read: [(event: Int, replay: UInt64)] = []
    var receipted = 0
    /// When the peer last could have answered.
    var responsiveAt: Int64 = 0

    init(id: ConnectionID, device: Int, life: Int) {
        self.id = id
        self.device = device
        self.life = life
    }
}

/// An item of the delivery task's inbox, with what the simulation notes of it.
enum Word {
    case attached(Int, ticket: UInt64)
    case state(Int, AppState, keepsWorking: Bool)
    /// A device's word over HTTP.
    case deviceState(Int, AppState)
    case disconnected(Int, mayReturn: Bool)
    case receipt(Int, cursor: UInt64, read: Int)
    case publish(Int)
    /// Everything that the simulation notes nothing of.
    case item(DeliveryBook.Item)
}

/// One push on its way to a gateway; the store's row.
struct Row {
    let event: Int
    /// Index among all devices.
    let device: Int
    var record: PushRecord
    var isDone = false
    /// In which life of the hub it went to the gateway last.
    var sentInLife: Int?
    /// The gateway asked for a pause until then.
    var notBefore: Int64 = 0
    /// A receipt came during its attempt.
    var isWithdrawn = false
}
