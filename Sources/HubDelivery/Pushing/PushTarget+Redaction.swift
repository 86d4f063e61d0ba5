/// Device tokens are credentials: they identify their owner's phone. So no description contains one, however it is printed.
extension PushTarget: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "\(provider.rawValue) \(form.rawValue) of device \(device)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror {
        Mirror(
            self,
            children: [
                "app": app, "device": device, "provider": provider, "platform": platform, "form": form, "environment": environment,
                "isProven": isProven,
            ])
    }
}

extension Device: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "device \(id) (\(provider.rawValue), \(token == nil ? "no token" : "with a token"))" }
    package var debugDescription: String { description }
    package var customMirror: Mirror {
        Mirror(
            self,
            children: [
                "app": app, "user": user, "id": id, "platform": platform, "provider": provider, "form": form, "environment": environment,
                "notifications": notifications, "registeredAt": registeredAt, "refreshedAt": refreshedAt,
                "lastAcceptedAt": lastAcceptedAt as Any,
            ])
    }
}

extension DirectAddress: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "\(provider.rawValue) \(form.rawValue)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror {
        Mirror(self, children: ["provider": provider, "platform": platform, "environment": environment, "form": form])
    }
}
