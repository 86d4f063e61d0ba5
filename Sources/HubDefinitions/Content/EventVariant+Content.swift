internal import HubCore

extension EventVariant {
    /// The notification with its texts filled in; of no use if `problems` grew. Costs a run of each template.
    /// - Parameters:
    ///   - locale: one of the tags of `locales`; nil: the definition's own texts.
    ///   - androidChannels: the definition's.
    ///   - problems: receives what is missing or cannot be sent; names only, never values.
    package func content(
        _ context: TemplateContext, locale: String?, androidChannels: [String], problems: inout [String]
    ) -> NotificationContent {
        let texts = locale.flatMap { locales[$0] } ?? notification
        let data = (data.render(context, problems: &problems).objectValue ?? [:]).filter { $0.value != .null }
        let title = texts?.title.render(context, problems: &problems)
        let body = texts?.body.render(context, problems: &problems)
        let subtitle = texts?.subtitle?.render(context, problems: &problems).nilIfEmpty
        // An image that only some publishes have is written as a section, which is empty without one.
        let image = texts?.image?.render(context, problems: &problems).nilIfEmpty
        let platforms = platformTemplates.map { Self.filled($0, context, androidChannels, &problems) } ?? platforms
        var content = NotificationContent(title: title, subtitle: subtitle, body: body, image: image, data: data, platforms: platforms)
        content.kind = kind
        return content
    }

    /// Blocks with their texts filled in; read again, because a value may be one that no gateway takes.
    private static func filled(
        _ templates: TemplateJSON, _ context: TemplateContext, _ androidChannels: [String], _ problems: inout [String]
    ) -> PlatformContent {
        let known = problems.count
        let members = templates.render(context, problems: &problems).objectValue ?? [:]
        guard problems.count == known else { return PlatformContent() }
        var reader = ContentReader(emptyIsAbsent: true)
        let content = PlatformContent(PlatformContent.withoutIdleActivity(members), reader: &reader)
        content.check(&reader)
        problems += reader.mistakes.map(\.description)
        if let problem = AndroidChannels.problem(content, known: androidChannels) {
            problems.append("android.channel_id: \(problem)")
        }
        return content
    }
}

extension String {
    fileprivate var nilIfEmpty: String? { isEmpty ? nil : self }
}
