/** Inline SVG icons. They accompany text, so they are hidden from screen readers. */
const PATHS = {
  overview: "M3 13h4l3-8 4 14 3-6h4",
  jobs: "M4 6h16M4 12h16M4 18h10",
  queues: "M4 7h10M4 12h16M4 17h7M18 15v4M16 17h4",
  tenants: "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7ZM2.5 20c.6-3.6 3.2-5.5 6.5-5.5s5.9 1.9 6.5 5.5M16 4.6a3.5 3.5 0 0 1 0 6.3M18 14.9c2 .8 3.2 2.5 3.5 5.1",
  workers: "M5 5h14v6H5zM5 13h14v6H5zM8 8h.01M8 16h.01",
  dead: "M12 4 2.8 19.5h18.4L12 4ZM12 10v4.5M12 17h.01",
  performance: "M4 20V10M10 20V4M16 20v-7M21 20H3",
  keys: "M14.5 9.5a4.5 4.5 0 1 0-4.3 4.5L12 15.5v2h2v2h3v-3l-4-4M8.5 8.5h.01",
  schedules: "M12 7v5l3 2M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18Z",
  workflows: "M6 8.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM18 14.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM6 20.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM6 8.5v7M8.5 6c4 0 4 6 7 6",
  audit: "M6 3h9l4 4v14H6zM9 12h7M9 16h7M9 8h3",
  menu: "M4 7h16M4 12h16M4 17h16",
  sun: "M12 16.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9ZM12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4M5.3 18.7l1.4-1.4M17.3 6.7l1.4-1.4",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5Z",
  out: "M14 8V5H5v14h9v-3M10 12h11M18 9l3 3-3 3",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  done: "m5 12.5 4.5 4.5L19 7.5",
  pause: "M8 5v14M16 5v14",
  play: "M7 5l12 7-12 7Z",
  plus: "M12 5v14M5 12h14",
  right: "m9 6 6 6-6 6",
  down: "m6 9 6 6 6-6",
  search: "M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13ZM15.5 15.5 20 20",
  close: "M6 6l12 12M18 6 6 18",
  again: "M4 12a8 8 0 1 0 2.5-5.8M4 4v4.5h4.5",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 24 24" fill="none" stroke="currentColor" strokeWidth="1.8" strokeLinecap="round" strokeLinejoin="round" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}

export function Logo({ size = 22 }: { size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="7" fill="#0b6b74" />
      <path d="M10 7v18M22 7v18M10 16h12" stroke="#fff" strokeWidth="3.4" strokeLinecap="round" fill="none" />
    </svg>
  );
}
