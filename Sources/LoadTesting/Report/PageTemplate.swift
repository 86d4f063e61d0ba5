internal import Mustache

/// The page of a report as a Mustache template, whose names are the fields of `ReportPage`. Drawings are SVG in percentages of their size.
enum PageTemplate {
    /// Fails if `source` is no template.
    static let compiled: Result<MustacheTemplate, any Error> = Result {
        MustacheContentTypes.register(PageText(), named: "PAGE")
        return try MustacheTemplate(string: source)
    }

    /// Colours of lines and bars: `s0` to `s7`.
    static let colours = 8

    /// Well-formed as XML too. The security policy enforces that the page loads nothing and runs nothing, whatever its content.
    private static let source = """
        {{% CONTENT_TYPE:PAGE}}
        <!DOCTYPE html>
        <html lang="en"><head><meta charset="utf-8"/><meta name="viewport" content="width=device-width, initial-scale=1"/>
        <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'"/>
        <title>{{title}}</title>
        <style>
        :root { color-scheme: light dark; --page: light-dark(#fcfcfb, #181817); --ink: light-dark(#1c1c1a, #ecebe6);
          --soft: light-dark(#5f5e5a, #a5a49d); --edge: light-dark(#dddcd6, #3a3935); --good: light-dark(#12703a, #6bcf94);
          --bad: light-dark(#b3261e, #ff8f85); --warn: light-dark(#8a5a00, #f2c266); --warn-back: light-dark(#fff6e0, #33290f); }
        .s0 { --c: light-dark(#2a6fdb, #6ba4ff); } .s1 { --c: light-dark(#5f6368, #a9adb3); } .s2 { --c: light-dark(#0f8a6a, #45c9a3); }
        .s3 { --c: light-dark(#c2560a, #f09150); } .s4 { --c: light-dark(#9136b8, #c78bea); } .s5 { --c: light-dark(#b8326f, #f07fae); }
        .s6 { --c: light-dark(#7a6a00, #cbb74a); } .s7 { --c: light-dark(#0a7c94, #54c2da); }
        body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
        main { max-width: 62rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; overflow-wrap: anywhere; }
        h1 { font-size: 1.6rem; line-height: 1.25; margin: 0; } h2 { font-size: 1.2rem; margin: 2.5rem 0 .75rem; }
        h3 { font-size: 1rem; margin: 1.5rem 0 .25rem; } p { margin: .5rem 0; } .soft, th, .range { color: var(--soft); }
        .warnings { background: var(--warn-back); color: var(--warn); border-radius: 6px; padding: .75rem 1rem; margin: 1.25rem 0; }
        ul { margin: .25rem 0; padding-left: 1.2rem; } .key { display: flex; flex-wrap: wrap; gap: 0 1.1rem; padding: 0; list-style: none; }
        .key li:only-child { display: none; }
        .key li::before { content: ""; display: inline-block; width: .85rem; height: .25rem; margin-right: .4rem; background: var(--c);
          vertical-align: middle; }
        .wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
        th, td { text-align: left; padding: .35rem .9rem .35rem 0; border-bottom: 1px solid var(--edge); vertical-align: top; }
        th, .range { font-size: .85rem; } .number { text-align: right; white-space: nowrap; } td.text { min-width: 6.5rem; }
        .server, .bar, .value { border: 0; padding-block: 0; } .server { width: 8rem; text-align: right; }
        .value { width: 14rem; white-space: nowrap; }
        .good { color: var(--good); font-weight: 600; } .bad { color: var(--bad); font-weight: 600; }
        td svg { width: 100%; height: 1.1rem; vertical-align: middle; } td rect { fill: var(--c); opacity: .85; }
        td .whisker { stroke: var(--ink); fill: none; } .plot { display: block; width: 100%; height: auto; font-size: 12px; }
        svg svg { overflow: visible; } text { fill: var(--soft); } line { stroke: var(--edge); } .faint { opacity: .45; }
        polyline { fill: none; stroke: var(--c); stroke-width: 2; stroke-linejoin: round; vector-effect: non-scaling-stroke; }
        polygon { fill: var(--c); opacity: .14; }
        </style></head>
        <body><main>
        <h1>{{title}}</h1>
        <p class="soft">{{summary}}</p>
        {{#warnings}}
        {{#first()}}<div class="warnings"><strong>Reasons to doubt these figures</strong><ul>{{/first()}}
        <li>{{.}}</li>
        {{#last()}}</ul></div>{{/last()}}
        {{/warnings}}
        {{#blocks}}
        {{#chapter}}<h2>{{.}}</h2>{{/chapter}}
        {{#heading}}<h3>{{.}}</h3>{{/heading}}
        {{#note}}<p class="soft">{{.}}</p>{{/note}}
        {{#plot}}
        <ul class="key">{{#lines}}<li class="s{{place}}">{{name}}</li>{{/lines}}</ul>
        <svg class="plot" viewBox="0 0 760 300" role="img" aria-label="{{title}}"><svg x="72" y="14" width="664" height="252">
        {{#columns}}
        <line{{^label}} class="faint"{{/label}} x1="{{at}}%" x2="{{at}}%" y1="0" y2="100%"/>
        {{#label}}<text x="{{at}}%" y="100%" dy="18" text-anchor="middle">{{.}}</text>{{/label}}
        {{/columns}}
        {{#levels}}
        <line{{^label}} class="faint"{{/label}} x1="0" x2="100%" y1="{{at}}%" y2="{{at}}%"/>
        {{#label}}<text x="-8" y="{{at}}%" dy="4" text-anchor="end">{{.}}</text>{{/label}}
        {{/levels}}
        <svg viewBox="0 0 100 100" preserveAspectRatio="none">
        {{#lines}}
        {{#band}}<polygon class="s{{place}}" points="{{.}}"/>{{/band}}
        <polyline class="s{{place}}" points="{{points}}"><title>{{name}}</title></polyline>
        {{/lines}}
        </svg></svg></svg>
        {{/plot}}
        {{#table}}
        <div class="wide"><table>
        <thead><tr>{{#head}}<th class="{{kind}}">{{text}}</th>{{/head}}</tr></thead>
        <tbody>
        {{#rows}}
        <tr>{{#.}}<td class="{{kind}}">{{text}}{{#range}}<div class="range">{{.}}</div>{{/range}}{{#bar}}<svg class="s{{place}}">
        <rect width="{{median}}%" height="100%" rx="2"/><rect class="whisker" x="{{lowest}}%" width="{{span}}%" y="35%" height="30%"/>
        </svg>{{/bar}}</td>{{/.}}</tr>
        {{/rows}}
        </tbody></table></div>
        {{/table}}
        {{/blocks}}
        </main></body></html>

        """
}
