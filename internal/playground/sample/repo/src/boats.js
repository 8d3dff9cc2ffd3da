// What we hire out, and what a day costs, in cents.
export const boats = {
  canoe: { name: 'Canoe', perDay: 2500 },
  dinghy: { name: 'Sailing dinghy', perDay: 4590 },
  cruiser: { name: 'Motor cruiser', perDay: 18900 },
};
