declare module '*.route' {
  const text: string;
  export default text;
}
