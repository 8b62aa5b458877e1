export const nothing: number = 0;
