import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({
  plugins: [react()],
  // Reached through preview addresses, whatever their names are.
  server: { host: "0.0.0.0", port: 5173, allowedHosts: true },
});
