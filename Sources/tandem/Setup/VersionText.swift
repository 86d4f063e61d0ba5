import CFacts
import CLibCurl
import CLibWebSockets
import COpenSSL
import CPostgreSQL
import CSQLiteSettings
import HubServer

/// The answer of `tandem --version`: version, commit, and the libraries in use.
enum VersionText {
    static var text: String {
        let commit = unsafe String(cString: tandem_build_commit())
        let build = commit.isEmpty ? BuildInfo.configuration : "\(BuildInfo.configuration), commit \(commit)"
        let postgres = PQlibVersion()
        return """
            tandem \(BuildInfo.version) (\(build))
            libwebsockets \(unsafe String(cString: lws_get_library_version()))
            \(unsafe String(cString: OpenSSL_version(OPENSSL_VERSION)))
            \(unsafe String(cString: curl_version()))
            SQLite \(unsafe String(cString: tandem_sqlite_version()))
            libpq \(postgres / 10_000).\(postgres % 10_000)
            """
    }
}
