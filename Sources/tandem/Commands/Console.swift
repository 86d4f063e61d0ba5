import ArgumentParser
import Foundation
import Glibc
import HubCrypto
import HubServer

/// `tandem console`: the page for operators.
struct Console: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Make passwords for the console.", subcommands: [Password.self])

    struct Password: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the hash of a password.",
            discussion: """
                Asks for the password on a terminal, twice and without showing it, or reads one line of standard input. The hash goes into
                console.operator_password_hash or console.viewer_password_hash of the configuration.

                tandem console password
                printf '%s\\n' "$password" | tandem console password
                """)

        func run() throws {
            do throws(ServerError) {
                print(PasswordHash(of: try Self.password()).text)
            } catch {
                throw Tandem.fail(error)
            }
        }

        private static func password() throws(ServerError) -> String {
            let isTerminal = isatty(STDIN_FILENO) != 0
            let password = isTerminal ? try ask("Password: ") : readLine(strippingNewline: true)
            guard let password, password.count >= PasswordHash.charactersMin, password.utf8.count <= PasswordHash.bytesMax else {
                let (least, most) = (PasswordHash.charactersMin, PasswordHash.bytesMax)
                throw ServerError(.usage, "the password needs at least \(least) characters and at most \(most) bytes")
            }
            if isTerminal, try ask("Again: ") != password { throw ServerError(.usage, "the two passwords differ") }
            return password
        }

        /// Reads a line from the terminal without showing it.
        private static func ask(_ question: String) throws(ServerError) -> String? {
            FileHandle.standardError.write(Data(question.utf8))
            var usual = termios()
            guard unsafe tcgetattr(STDIN_FILENO, &usual) == 0 else {
                throw ServerError(.failed, "the terminal cannot be asked not to show the password")
            }
            var hidden = usual
            hidden.c_lflag &= ~tcflag_t(ECHO)
            unsafe _ = tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden)
            defer {
                unsafe _ = tcsetattr(STDIN_FILENO, TCSAFLUSH, &usual)
                FileHandle.standardError.write(Data("\n".utf8))
            }
            return readLine(strippingNewline: true)
        }
    }
}
