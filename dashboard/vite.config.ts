import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// Every address in the build is relative, so that it works below any path that a proxy gives it.
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
    // One page for all: each test cleans up after itself, and making a page is what takes time.
    isolate: false,
    testTimeout: 60_000,
    pool: "threads",
    maxWorkers: 2,
  },
});
