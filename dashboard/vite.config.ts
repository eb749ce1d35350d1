import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// All URLs in the build are relative, so that it works below any path prefix.
export default defineConfig({
  base: "./",
  plugins: [react()],
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 450,
  },
  server: {
    proxy: { "/v1": "http://127.0.0.1:8080" },
  },
  test: {
    environment: "jsdom",
    include: ["src/**/*.test.{ts,tsx}"],
    setupFiles: ["src/test/setup.ts"],
    // All test files share one jsdom, because creating it is slow. Each test cleans up after itself.
    isolate: false,
    testTimeout: 60_000,
    pool: "threads",
    maxWorkers: 2,
  },
});
