// Kiln in VS Code: starts `kiln debug --dap`, which speaks to the editor itself.
//
// Plain JavaScript without dependencies. To try it, link or copy this folder to
// ~/.vscode/extensions/kiln-debug; whoever has npm packs it with `npx vsce package`.
"use strict";

const vscode = require("vscode");

/** The command that is the adapter. */
class Adapter {
  createDebugAdapterDescriptor() {
    const command = vscode.workspace.getConfiguration("kiln").get("command") || "kiln";
    return new vscode.DebugAdapterExecutable(command, ["debug", "--dap"]);
  }
}

/** What F5 does without a launch.json: the file that is open. */
class Configuration {
  resolveDebugConfiguration(folder, configuration) {
    if (configuration.type || configuration.request || configuration.name) return configuration;
    const editor = vscode.window.activeTextEditor;
    if (!editor) return undefined;
    return {
      type: "kiln",
      request: "launch",
      name: "Kiln: this launch",
      program: editor.document.fileName,
      stopOnEntry: true,
    };
  }
}

function activate(context) {
  context.subscriptions.push(
    vscode.debug.registerDebugAdapterDescriptorFactory("kiln", new Adapter()),
    vscode.debug.registerDebugConfigurationProvider("kiln", new Configuration()),
  );
}

function deactivate() {}

module.exports = { activate, deactivate };
