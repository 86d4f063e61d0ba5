// swift-tools-version: 6.2
import PackageDescription

/// One set of rules for every target of ours: a warning is an error, and what leaves Swift's safety has to say so.
let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
]
/// Optimised in debug builds as well, with its assertions: tests, and the hub of `make run`, spend their time in these targets.
/// The optimiser takes three quarters of such a target's build, so few have it.
let optimised: [SwiftSetting] = [.unsafeFlags(["-O", "-assert-config", "Debug"], .when(configuration: .debug))]
/// Test code calls the same unsafe borders all the time; marking each call there would only hide the assertions.
let strictTests: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .treatAllWarnings(as: .error),
]

let yams = Target.Dependency.product(name: "Yams", package: "Yams")
let mustache = Target.Dependency.product(name: "Mustache", package: "swift-mustache")
let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")
let arguments = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")
let histogram = Target.Dependency.product(name: "Histogram", package: "hdrhistogram-swift")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")

/// Listed bottom-up: a target may import only what stands above it here.
let package = Package(
    name: "tandem",
    // For TandemClient in apps; the hub itself is built on Linux.
    platforms: [.iOS(.v15), .macOS(.v13), .tvOS(.v15)],
    products: [
        .executable(name: "tandem", targets: ["tandem"]),
        .executable(name: "tandem-gateways", targets: ["tandem-gateways"]),
        .executable(name: "tandem-loadtest", targets: ["tandem-loadtest"]),
        // For apps with PusherSwift, beside it.
        .library(name: "TandemClient", targets: ["TandemClient"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
        .package(url: "https://github.com/hummingbird-project/swift-mustache", from: "2.1.1"),
        .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", from: "0.2.0"),
    ],
    targets: [
        // The C borders: a module map each, and a shim where Swift cannot import what the library offers.
        .systemLibrary(
            name: "CLibWebSockets", pkgConfig: "libwebsockets", providers: [.apt(["libwebsockets-dev", "libuv1-dev"])]),
        .systemLibrary(name: "CLibCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CNGHTTP2", pkgConfig: "libnghttp2", providers: [.apt(["libnghttp2-dev"])]),
        .systemLibrary(name: "CPostgreSQL", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
        .target(name: "CSQLiteSettings", linkerSettings: [.linkedLibrary("sqlite3")]),
        .target(name: "CMemory"),
        .target(name: "CFacts"),
        .target(name: "CLoadSockets"),
        .target(name: "CSimdJSON", linkerSettings: [.linkedLibrary("simdjson")]),

        .target(name: "HubCore", swiftSettings: strict + optimised),
        .target(name: "HubCrypto", dependencies: ["COpenSSL"], swiftSettings: strict),
        .target(name: "HubJSON", dependencies: ["HubCore", "CSimdJSON"], swiftSettings: strict + optimised),
        .target(name: "HubYAML", dependencies: ["HubCore", yams], swiftSettings: strict),
        .target(name: "PusherProtocol", dependencies: ["HubCore", "HubCrypto", "HubJSON"], swiftSettings: strict + optimised),
        .target(name: "HubWire", dependencies: ["HubCore", "HubCrypto"], swiftSettings: strict),
        .target(name: "HubTransport", dependencies: ["HubCore", "HubWire", "CLibWebSockets", "COpenSSL"], swiftSettings: strict),
        .target(name: "HubChannels", dependencies: ["HubCore", "HubJSON", "PusherProtocol"], swiftSettings: strict + optimised),
        .target(name: "HubDefinitions", dependencies: ["HubCore", "HubYAML", mustache], swiftSettings: strict),
        .target(name: "HubDelivery", dependencies: ["HubCore", "HubCrypto", "HubDefinitions"], swiftSettings: strict),
        .target(
            name: "HubConfiguration", dependencies: ["HubCore", "HubCrypto", "HubYAML", "HubDefinitions"], swiftSettings: strict),
        .target(name: "HubOutbox", dependencies: ["HubCore", "HubDefinitions", "HubDelivery", logging], swiftSettings: strict + optimised),
        .target(name: "HubHTTPClient", dependencies: ["HubCore", "CLibCurl", "COpenSSL"], swiftSettings: strict),
        .target(
            name: "HubPush", dependencies: ["HubCore", "HubCrypto", "HubJSON", "HubDefinitions", "HubDelivery", "HubHTTPClient", logging],
            swiftSettings: strict),
        .target(
            name: "HubWebhooks", dependencies: ["HubCore", "HubCrypto", "PusherProtocol", "HubDelivery", "HubHTTPClient", logging],
            swiftSettings: strict),
        .target(
            name: "HubStorage",
            dependencies: [
                "CSQLiteSettings", "CPostgreSQL", "HubCore", "HubCrypto", "HubJSON", "HubDefinitions", "HubDelivery", grdb,
            ],
            swiftSettings: strict),
        .target(name: "HubScaleOut", dependencies: ["COpenSSL", "HubCore", "HubCrypto"], swiftSettings: strict),
        .target(
            name: "HubAPI",
            dependencies: ["HubCore", "HubCrypto", "HubJSON", "PusherProtocol", "HubChannels", "HubDefinitions", "HubDelivery"],
            resources: [.embedInCode("Client/tandem.js"), .embedInCode("Console/Web/Page"), .embedInCode("Console/Web/Screens")],
            swiftSettings: strict),
        .target(
            name: "HubServer",
            dependencies: [
                "CFacts", "CMemory", "HubCore", "HubCrypto", "HubJSON", "PusherProtocol", "HubTransport", "HubChannels",
                "HubDefinitions", "HubDelivery", "HubConfiguration", "HubOutbox", "HubPush", "HubWebhooks", "HubStorage",
                "HubScaleOut", "HubAPI", logging,
            ], swiftSettings: strict),
        // An app's, not the hub's: it needs Foundation alone.
        .target(name: "TandemClient", swiftSettings: strict),
        // Certificates of the simulators and of tests.
        .target(name: "CertificateIssuing", dependencies: ["HubCrypto", "COpenSSL"], swiftSettings: strict),
        .target(
            name: "GatewaySimulators", dependencies: ["HubCore", "HubCrypto", "HubJSON", "CertificateIssuing", "CNGHTTP2", "COpenSSL"],
            swiftSettings: strict),
        .executableTarget(name: "tandem-gateways", dependencies: ["GatewaySimulators", arguments], swiftSettings: strict),
        // `tandem demo`: a page with four phones around a hub and simulated gateways.
        .target(
            name: "HubDemo",
            dependencies: ["HubCore", "HubCrypto", "HubJSON", "PusherProtocol", "HubHTTPClient", "GatewaySimulators"],
            resources: [.embedInCode("Page")], swiftSettings: strict),
        .target(
            name: "LoadTesting", dependencies: ["HubCore", "HubCrypto", "HubJSON", "CLoadSockets", "COpenSSL", histogram, mustache],
            swiftSettings: strict),
        .executableTarget(
            name: "tandem-loadtest", dependencies: ["LoadTesting", arguments], swiftSettings: strict),
        .executableTarget(
            name: "tandem",
            dependencies: [
                "CFacts", "CLibCurl", "CLibWebSockets", "COpenSSL", "CPostgreSQL", "CSQLiteSettings",
                "HubConfiguration", "HubCore", "HubCrypto", "HubDefinitions", "HubDemo", "HubHTTPClient", "HubJSON", "HubServer",
                "HubStorage", "HubTransport", "PusherProtocol", arguments, logging,
            ], swiftSettings: strict),

        .target(
            name: "HubTesting", dependencies: ["HubCore", "HubCrypto", "CertificateIssuing"], path: "Tests/HubTesting",
            swiftSettings: strictTests),
        .testTarget(name: "HubCoreTests", dependencies: ["HubTesting", "HubCore"], swiftSettings: strictTests),
        .testTarget(name: "HubCryptoTests", dependencies: ["HubCrypto"], swiftSettings: strictTests),
        .testTarget(name: "HubJSONTests", dependencies: ["HubTesting", "HubCore", "HubJSON"], swiftSettings: strictTests),
        .testTarget(name: "HubYAMLTests", dependencies: ["HubTesting", "HubCore", "HubYAML"], swiftSettings: strictTests),
        .testTarget(
            name: "PusherProtocolTests", dependencies: ["HubTesting", "HubCore", "HubCrypto", "HubJSON", "PusherProtocol"],
            swiftSettings: strictTests),
        .testTarget(
            name: "HubTransportTests", dependencies: ["HubTesting", "HubCore", "HubWire", "HubTransport", "COpenSSL"],
            swiftSettings: strictTests),
        .testTarget(name: "HubWireTests", dependencies: ["HubTesting", "HubCore", "HubWire"], swiftSettings: strictTests),
        .testTarget(
            name: "HubChannelsTests",
            dependencies: ["HubTesting", "HubCore", "HubCrypto", "HubJSON", "PusherProtocol", "HubChannels"], swiftSettings: strictTests),
        // Delivery's pure parts in a world that goes wrong; `make simulate`.
        .target(
            name: "DeliverySimulation",
            dependencies: [
                "HubTesting", "HubCore", "HubDefinitions", "HubDelivery", "HubOutbox", "HubScaleOut", "HubStorage", "HubChannels",
                "HubWebhooks", "PusherProtocol", "RedisModel",
            ],
            path: "Tests/DeliverySimulation", swiftSettings: strictTests),
        .executableTarget(
            name: "tandem-simulate", dependencies: ["DeliverySimulation"], path: "Tests/tandem-simulate", swiftSettings: strictTests),
        .testTarget(
            name: "HubScaleOutTests", dependencies: ["HubTesting", "HubCore", "HubScaleOut", "CertificateIssuing", "RedisModel"],
            swiftSettings: strictTests),
        // A Redis in memory, with the Lua of Redis: only what simulates nodes needs it.
        .target(name: "CLua", path: "Tests/CLua", linkerSettings: [.linkedLibrary("lua5.1")]),
        .target(
            name: "RedisModel", dependencies: ["CLua", "HubCore", "HubCrypto", "HubScaleOut"], path: "Tests/RedisModel",
            swiftSettings: strictTests),
        .testTarget(name: "RedisModelTests", dependencies: ["RedisModel", "HubCore", "HubScaleOut"], swiftSettings: strictTests),
        // Redis, and several nodes as one hub, on real servers; `make test-cluster`.
        .testTarget(
            name: "ClusterTests",
            dependencies: ["HubTesting", "RedisModel", "HubChannels", "HubCore", "HubDelivery", "HubScaleOut", "HubServer"],
            exclude: ["faults"], swiftSettings: strictTests),
        .testTarget(
            name: "HubDefinitionsTests", dependencies: ["HubTesting", "HubCore", "HubJSON", "HubYAML", "HubDefinitions"],
            swiftSettings: strictTests),
        .testTarget(
            name: "HubDeliveryTests",
            dependencies: ["HubTesting", "DeliverySimulation", "HubCore", "HubYAML", "HubDefinitions", "HubDelivery", "HubStorage"],
            swiftSettings: strictTests),
        .testTarget(
            name: "HubConfigurationTests", dependencies: ["HubTesting", "HubCore", "HubYAML", "HubConfiguration"],
            swiftSettings: strictTests),
        // The rules that every store keeps, and what tests of stores share.
        .target(
            name: "StoreTesting", dependencies: ["HubCore", "HubDefinitions", "HubDelivery"], path: "Tests/StoreTesting",
            swiftSettings: strictTests),
        .testTarget(
            name: "HubStorageTests",
            dependencies: ["HubTesting", "StoreTesting", "HubCore", "HubJSON", "HubDefinitions", "HubDelivery", "HubStorage", grdb],
            swiftSettings: strictTests),
        // Every store by these rules: SQLite with `make test`, PostgreSQL as well with `make test-stores`.
        .testTarget(
            name: "StoreTests", dependencies: ["HubTesting", "StoreTesting", "HubCore", "HubDefinitions", "HubDelivery", "HubStorage"],
            exclude: ["crashes.py", "owners.py", "postgres.sh", "sql_latency.py"], swiftSettings: strictTests),
        // One of several processes that share a database; owners.py kills and stops them.
        .executableTarget(
            name: "tandem-owner", dependencies: ["HubCore", "HubDelivery", "HubStorage"], path: "Tests/tandem-owner",
            swiftSettings: strictTests),
        .testTarget(
            name: "HubAPITests",
            dependencies: [
                "HubTesting", "HubAPI", "HubCore", "HubCrypto", "HubJSON", "HubYAML", "PusherProtocol", "HubChannels", "HubDefinitions",
                "HubDelivery", "HubStorage",
            ], swiftSettings: strictTests),
        .testTarget(name: "HubHTTPClientTests", dependencies: ["HubTesting", "HubHTTPClient"], swiftSettings: strictTests),
        .testTarget(
            name: "HubPushTests",
            dependencies: [
                "HubTesting",
                "HubCore", "HubCrypto", "HubJSON", "HubDefinitions", "HubDelivery", "HubHTTPClient", "HubPush",
                "GatewaySimulators", logging,
            ], swiftSettings: strictTests),
        .testTarget(
            name: "GatewaySimulatorsTests",
            dependencies: ["HubTesting", "GatewaySimulators", "HubCore", "HubCrypto", "HubJSON", "CNGHTTP2", "COpenSSL"],
            swiftSettings: strictTests),
        .testTarget(
            name: "HubDemoTests", dependencies: ["HubDemo", "HubCore", "HubJSON"], swiftSettings: strictTests),
        .testTarget(
            name: "LoadTestingTests",
            dependencies: ["HubTesting", "HubCore", "HubCrypto", "HubJSON", "PusherProtocol", "LoadTesting", "COpenSSL"],
            swiftSettings: strictTests),
        .testTarget(
            name: "HubWebhooksTests",
            dependencies: [
                "HubTesting", "HubCore", "HubCrypto", "PusherProtocol", "HubDelivery", "HubHTTPClient", "HubStorage", "HubWebhooks",
                logging,
            ], swiftSettings: strictTests),
        // A store and a scripted gateway, for the tests of the outbox and of the server.
        .target(
            name: "OutboxTesting", dependencies: ["HubTesting", "HubDefinitions", "HubDelivery", "HubOutbox", "HubStorage", logging],
            path: "Tests/OutboxTesting", swiftSettings: strictTests),
        .testTarget(
            name: "HubOutboxTests",
            dependencies: [
                "HubTesting", "OutboxTesting", "HubCore", "HubDefinitions", "HubDelivery", "HubOutbox", "HubPush", grdb, logging,
            ],
            swiftSettings: strictTests),
        .testTarget(
            name: "HubServerTests",
            dependencies: [
                "HubTesting", "OutboxTesting",
                "HubAPI", "HubChannels", "HubConfiguration", "HubCore", "HubDefinitions", "HubDelivery", "HubOutbox", "HubPush",
                "HubScaleOut", "HubServer",
                "HubStorage", "HubWebhooks", "HubYAML", "PusherProtocol",
                logging,
            ], swiftSettings: strictTests),
        // Seeded attacks on everything that parses: `make fuzz` runs the executable, `make test` a short slice of it.
        .target(
            name: "HubFuzzing",
            dependencies: [
                "HubTesting", "HubCore", "HubCrypto", "HubJSON", "HubYAML", "PusherProtocol", "HubWire", "HubTransport", "HubChannels",
                "HubDefinitions", "HubDelivery", "HubConfiguration", "HubServer", logging,
            ], path: "Tests/HubFuzzing", exclude: ["seeds"], swiftSettings: strictTests),
        .executableTarget(
            name: "tandem-fuzz", dependencies: ["HubTesting", "HubFuzzing", arguments], path: "Tests/tandem-fuzz",
            swiftSettings: strictTests),
        .testTarget(name: "HubFuzzingTests", dependencies: ["HubTesting", "HubFuzzing"], swiftSettings: strictTests),
        // The companion with a stand-in for PusherSwift, as a program: the tests of companions talk to it.
        .executableTarget(
            name: "tandem-companion", dependencies: ["TandemClient"], path: "Tests/tandem-companion", swiftSettings: strictTests),
        // Runs the built executables as child processes, with third-party clients in Python.
        .testTarget(
            name: "HubIntegrationTests",
            dependencies: ["HubTesting", "HubCore", "HubJSON", "HubDefinitions", "HubDelivery", "HubPush", "GatewaySimulators"],
            exclude: ["Python", "python-env.sh", "requirements.txt"], swiftSettings: strictTests),
    ],
    cxxLanguageStandard: .cxx17
)
