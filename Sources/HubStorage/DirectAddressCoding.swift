import HubCore
import HubDelivery
import HubJSON

/// The stored form of a `DirectAddress`: a JSON object with five texts. Never logged.
enum DirectAddressCoding {
    static func text(_ address: DirectAddress) -> String {
        let value: JSONValue = [
            "provider": .string(address.provider.rawValue), "platform": .string(address.platform.rawValue),
            "environment": .string(address.environment.rawValue), "form": .string(address.form.rawValue), "text": .string(address.text),
        ]
        return value.text
    }

    static func decode(_ text: String) throws(StorageError) -> DirectAddress {
        guard let value = try? JSONValue(parsing: text),
            let provider = value["provider"]?.stringValue.flatMap(PushProvider.init(rawValue:)),
            let platform = value["platform"]?.stringValue.flatMap(DevicePlatform.init(rawValue:)),
            let environment = value["environment"]?.stringValue.flatMap(APNsEnvironment.init(rawValue:)),
            let form = value["form"]?.stringValue.flatMap(TargetForm.init(rawValue:)), let address = value["text"]?.stringValue
        else { throw StorageError(.unreadableRow, "the address of a stored push cannot be read") }
        return DirectAddress(provider: provider, platform: platform, environment: environment, form: form, text: address)
    }
}
