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
/// Test code calls the same unsafe borders all the time; marking each call there would only hide the assertions.
let strictTests: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .treatAllWarnings(as: .error),
]

let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")

/// Listed bottom-up: a target may import only what stands above it here.
let package = Package(
    name: "tandem",
    dependencies: [
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    ],
    targets: [
        // The C borders: a module map each, and a shim where Swift cannot import what the library offers.
        .systemLibrary(
            name: "CLibWebSockets", pkgConfig: "libwebsockets", providers: [.apt(["libwebsockets-dev", "libuv1-dev"])]),
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .target(name: "CSimdJSON", linkerSettings: [.linkedLibrary("simdjson")]),

        .target(name: "HubCore", swiftSettings: strict),
        .target(name: "HubCrypto", dependencies: ["COpenSSL"], swiftSettings: strict),
        .target(name: "HubJSON", dependencies: ["HubCore", "CSimdJSON"], swiftSettings: strict),
        .target(name: "PusherProtocol", dependencies: ["HubCore", "HubCrypto", "HubJSON"], swiftSettings: strict),
        .target(name: "HubTransport", dependencies: ["HubCore", "CLibWebSockets"], swiftSettings: strict),
        .target(name: "HubChannels", dependencies: ["HubCore", "HubJSON", "PusherProtocol"], swiftSettings: strict),
        .target(name: "HubDelivery", dependencies: ["HubCore"], swiftSettings: strict),
        .target(name: "HubStorage", dependencies: ["HubCore", "HubJSON", "HubDelivery", grdb], swiftSettings: strict),

        .testTarget(name: "HubCryptoTests", dependencies: ["HubCrypto"], swiftSettings: strictTests),
        .testTarget(name: "HubJSONTests", dependencies: ["HubCore", "HubJSON"], swiftSettings: strictTests),
        .testTarget(
            name: "PusherProtocolTests", dependencies: ["HubCore", "HubCrypto", "HubJSON", "PusherProtocol"], swiftSettings: strictTests),
        .testTarget(
            name: "HubStorageTests", dependencies: ["HubCore", "HubDelivery", "HubStorage", grdb], swiftSettings: strictTests),
    ],
    cxxLanguageStandard: .cxx17
)
