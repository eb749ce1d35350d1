/**
 * Mantine theme. Mantine normally writes variables and responsive rules into style elements, which the content security
 * policy forbids. They are in `styles/` instead, and only components that need no style element are used.
 */
import { createTheme, type MantineColorsTuple } from "@mantine/core";

const tide: MantineColorsTuple = [
  "#e6f6f6", "#d2ebec", "#a6d6d8", "#76c0c3", "#50adb1", "#38a0a5", "#0f7f86", "#0b6b74", "#085861", "#05444b",
];

export const theme = createTheme({
  primaryColor: "tide",
  colors: { tide },
  fontFamily: "var(--mantine-font-family)",
  cursorType: "pointer",
  respectReducedMotion: true,
  components: {
    // Scroll locking would write a style element.
    Modal: { defaultProps: { lockScroll: false, centered: false, closeButtonProps: { "aria-label": "Close" }, transitionProps: { duration: 120 } } },
    Drawer: { defaultProps: { lockScroll: false, transitionProps: { duration: 120 } } },
  },
});
